import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { OwnerMap } from '../../../foundation/lib/owner-map.ts'
import { isIdentifier } from './route-segment.ts'

export interface RouteOptions {
  /**
   * Routes known to the user, tried in order before the heuristic; the first match names the route. `{name}`, `:name`
   * and `*` match one segment, `{name...}` and `**` at the end match the rest.
   */
  readonly patterns: readonly string[]
  /**
   * Route of a path that no pattern matches. `heuristic`: guessed; `path`: the path itself (only for services with few
   * paths); `wildcard`: `/**`; `unset`: none.
   */
  readonly unmatched: 'heuristic' | 'path' | 'wildcard' | 'unset'
  /** Words that the heuristic distinguishes below one prefix before they become `*`. */
  readonly maxSegmentCardinality: number
}

/**
 * Finds the route (`http.route`) of a path, for each service of an owner separately. The heuristic replaces segments
 * that look like identifiers with `*`, and further words below a prefix with too many different words. The same
 * requests in the same order always give the same routes.
 *
 * The memory for learned words is shared by owner (see `FairShare`). A service only ever goes from words to `*`,
 * whatever other services do, so the number of its routes is bounded: an owner that has to free memory has words of its
 * newest service folded permanently, and a service without room learns nothing.
 */
export class Routes {
  readonly #owners = new OwnerMap<OwnerRoutes>()
  readonly #room: FairShare
  readonly #mostPathBytes: number
  /** For services without room. */
  #crowd: ServiceRoutes
  #rules: Rules
  readonly #paths = new PathBytes()
  /** Owners without room for another service, until `expire` runs again. */
  readonly #full = new OwnerMap<true>()
  #refused = 0
  #taken = 0

  /** `maxBytes`: limit for learned words; cached routes of known paths may take half as much again. */
  constructor(options: RouteOptions, maxBytes = usualBytes) {
    this.#rules = rulesOf(options)
    this.#room = new FairShare(maxBytes)
    this.#mostPathBytes = maxBytes / 2
    this.#crowd = this.#folded()
  }

  /**
   * Applies other options. Learned words are kept, so that routes that no change affects stay the same; another
   * `maxSegmentCardinality` discards them.
   */
  change(options: RouteOptions): void {
    const rules = rulesOf(options)
    this.#forgetPaths()
    if (rules.maxSegmentCardinality !== this.#rules.maxSegmentCardinality) {
      this.#owners.clear()
      this.#room.clear()
    }
    this.#rules = rules
    for (const { services } of this.#owners.values())
      for (const routes of services.values()) routes.rules = rules
    this.#crowd = this.#folded()
  }

  /** Estimated memory in use. */
  get bytes(): number {
    return this.#room.used + this.#paths.bytes
  }

  /**
   * Services and words not learned for lack of room, and times that words were folded to make room for other owners.
   */
  get losses(): ShareLosses {
    return { refused: this.#refused, taken: this.#taken }
  }

  /** Clears the cached routes; learned words stay, so that routes stay the same. */
  shed(): number {
    const freed = this.#paths.bytes
    this.#forgetPaths()
    return freed
  }

  /** Forgets services that were not used for an hour. Call it periodically. */
  expire(nowMs: number): void {
    this.#full.clear()
    for (const of of this.#owners.values()) {
      const gone = (routes: ServiceRoutes) => nowMs - routes.usedMs >= forgetMs
      for (const [name, routes] of of.services) {
        if (routes.used) routes.usedMs = nowMs
        routes.used = false
        if (gone(routes)) this.#forget(of, name, routes)
      }
      of.learned = of.learned.filter(routes => !gone(routes))
    }
  }

  /**
   * The route of `path`, '' for none. With `served` false (the service answered 404) it guesses from known words and
   * learns nothing, so that a scanner's thousand paths do not use up the words of a prefix.
   */
  route(owner: Owner, service: string, path: string, served = true): string {
    const routes = this.#owners.get(owner)?.services.get(service) ?? this.#added(owner, service)
    routes.used = true
    const route = routes.route(path, served)
    if (this.#paths.bytes > this.#mostPathBytes) this.#forgetPaths()
    return route
  }

  /** The routes of a new service. */
  #added(owner: Owner, service: string): ServiceRoutes {
    if (this.#full.get(owner)) return this.#crowd
    const bytes = serviceBytes + service.length
    if (!this.#takes(owner, bytes)) {
      this.#full.set(owner, true)
      return this.#crowd
    }
    // Looked up after that call: it may have freed everything of this owner or another one.
    let of = this.#owners.get(owner)
    if (of === undefined) {
      of = { owner, services: new Map(), learned: [] }
      this.#owners.set(owner, of)
    }
    const routes = new ServiceRoutes(this.#rules, this.#paths, bytes, change => this.#grows(owner, change))
    of.services.set(service, routes)
    of.learned.push(routes)
    return routes
  }

  /** Adjusts the memory of a service's tree by `bytes`, which may be negative. False if there is no room. */
  #grows(owner: Owner, bytes: number): boolean {
    if (bytes > 0) return this.#takes(owner, bytes)
    this.#room.remove(owner, -bytes)
    return true
  }

  #takes(owner: Owner, bytes: number): boolean {
    while (!this.#room.hasRoom(bytes)) {
      const giver = this.#room.giver(owner, bytes)
      if (giver === undefined || isSameOwner(owner, giver) || !this.#gives(giver)) {
        this.#refused++
        return false
      }
      this.#taken++
    }
    this.#room.add(owner, bytes)
    return true
  }

  /** Folds words of the newest service of `giver` that has any; if none has, its oldest service is forgotten. */
  #gives(giver: Owner): boolean {
    const of = this.#owners.get(giver)
    if (of === undefined) return false
    const newest = of.learned.at(-1)
    if (newest !== undefined) {
      if (!newest.fold()) of.learned.pop()
      return true
    }
    const [oldest] = of.services
    if (oldest === undefined) return false
    this.#forget(of, ...oldest)
    return true
  }

  #forget({ owner, services }: OwnerRoutes, name: string, routes: ServiceRoutes): void {
    routes.forgetPaths()
    services.delete(name)
    this.#room.remove(owner, routes.bytes)
    if (services.size === 0) this.#owners.delete(owner)
  }

  #forgetPaths(): void {
    for (const { services } of this.#owners.values())
      for (const routes of services.values()) routes.forgetPaths()
    this.#crowd.forgetPaths()
  }

  #folded(): ServiceRoutes {
    const routes = new ServiceRoutes(this.#rules, this.#paths, serviceBytes, () => false)
    while (routes.fold());
    return routes
  }
}

/** The services of one owner. */
interface OwnerRoutes {
  readonly owner: Owner
  readonly services: Map<string, ServiceRoutes>
  /** Services that may learn, the newest last. */
  learned: ServiceRoutes[]
}

/**
 * Returns a function that checks whether a path matches one of `patterns`: an exact path, or a prefix that ends in `*`.
 */
export function pathMatcher(patterns: readonly string[]): (path: string) => boolean {
  const exact = new Set<string>()
  const prefixes: string[] = []
  for (const pattern of patterns) {
    if (pattern.endsWith('*')) prefixes.push(pattern.slice(0, -1))
    else exact.add(pattern)
  }
  return path => {
    if (exact.has(path)) return true
    for (const prefix of prefixes) if (path.startsWith(prefix)) return true
    return false
  }
}

/** Default if the available memory is unknown. */
const usualBytes = 4 * 2 ** 20
/** A service unused for this long is forgotten, and learned again if it returns. */
const forgetMs = 3_600_000
const maxCachedPaths = 512
/** Characters. The route of a longer path is computed each time: caching it would take megabytes per service. */
const maxCachedPath = 256
/** Words that one service's tree may hold; a full tree learns no more. */
const maxWords = 2_000
const maxSegments = 10
/** Stands for a segment that is not distinguished from others. */
const restText = '/*'
/** Sizes of a cache, its entries, a word and a service without their characters, measured. */
const cacheBytes = 1_600
const pathBytes = 160
const wordBytes = 320
const serviceBytes = 900

/** One node in the tree of words: the possible next segments. */
class Place {
  /** Its part of a route. */
  readonly text: string
  readonly words = new Map<string, Place>()
  /** Below undistinguished segments: identifiers and, once `folded`, all words. */
  rest: Place | undefined
  folded = false

  constructor(text: string) {
    this.text = text
  }
}

/** Memory of all path caches. */
class PathBytes {
  bytes = 0
}

/** Routes by path. */
class PathCache {
  readonly #all: PathBytes
  #routes: BoundedMap<string, string> | undefined
  #bytes = 0

  constructor(all: PathBytes) {
    this.#all = all
  }

  get(path: string): string | undefined {
    return this.#routes?.get(path)
  }

  /** The path must not be in the cache yet. */
  set(path: string, route: string): void {
    if (this.#routes === undefined) {
      this.#routes = new BoundedMap(maxCachedPaths, (path, route) => this.#count(-bytesOf(path, route)))
      this.#count(cacheBytes)
    }
    this.#routes.set(path, route)
    this.#count(bytesOf(path, route))
  }

  clear(): void {
    if (this.#bytes === 0) return
    this.#routes = undefined
    this.#count(-this.#bytes)
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    this.#all.bytes += bytes
  }
}

function bytesOf(path: string, route: string): number {
  return pathBytes + path.length + route.length
}

class ServiceRoutes {
  rules: Rules
  /** Used since the last check, and the time of that check. */
  used = false
  usedMs = Number.NEGATIVE_INFINITY
  /** Its size, without cached paths. */
  bytes: number
  readonly #known: PathCache
  /** Guesses for paths that were not served; any learned word may change them. */
  readonly #strangers: PathCache
  readonly #root = new Place('')
  #words = 0
  /** It learns nothing any more. */
  #isFolded = false
  readonly #grows: (bytes: number) => boolean

  /** `grows` asks for room for learned words, and takes a negative number when words are forgotten. */
  constructor(rules: Rules, paths: PathBytes, bytes: number, grows: (bytes: number) => boolean) {
    this.rules = rules
    this.#known = new PathCache(paths)
    this.#strangers = new PathCache(paths)
    this.bytes = bytes
    this.#grows = grows
  }

  forgetPaths(): void {
    this.#known.clear()
    this.#strangers.clear()
  }

  /** Folds the words of one node, the newest of the deepest. False if there were none; then it stops learning. */
  fold(): boolean {
    const place = newestFork(this.#root)
    if (place !== undefined) this.#foldAt(place)
    else {
      this.#isFolded = true
      const { rest } = this.#root
      this.#root.rest = undefined
      if (rest !== undefined) this.#forget(rest)
    }
    return place !== undefined
  }

  route(path: string, served: boolean): string {
    return (
      this.#known.get(path) ?? (served ? undefined : this.#strangers.get(path)) ?? this.#find(path, served)
    )
  }

  /** Separate from `route`, which otherwise would allocate the closure on each call. */
  #find(path: string, served: boolean): string {
    const segments = segmentsOf(path)
    const named = this.rules.patterns.find(pattern => pattern.matches(segments))
    const route = named?.text ?? this.#unmatched(path, segments, served)
    const guessed = named === undefined && this.rules.unmatched === 'heuristic'
    const cache = guessed && !served ? this.#strangers : this.#known
    if (path.length <= maxCachedPath) cache.set(path, route)
    return route
  }

  #unmatched(path: string, segments: readonly string[], served: boolean): string {
    switch (this.rules.unmatched) {
      case 'heuristic':
        return this.#guess(segments, served)
      case 'path':
        return path
      case 'wildcard':
        return '/**'
      case 'unset':
        return ''
    }
  }

  #guess(segments: readonly string[], served: boolean): string {
    const learn = served && !this.#isFolded
    let route = ''
    let place: Place | undefined = this.#root
    for (let i = 0; i < segments.length; i++) {
      if (i === maxSegments) return `${route}/**`
      const segment: string = segments[i]!
      const next: Place | undefined =
        place === undefined || isIdentifier(segment) ? undefined : this.#wordBelow(place, segment, learn)
      route += next?.text ?? restText
      place = next ?? (place === undefined ? undefined : this.#restBelow(place, learn))
    }
    return route === '' ? '/' : route
  }

  /** The node below a word; undefined if the word is not distinguished from others. */
  #wordBelow(place: Place, word: string, learn: boolean): Place | undefined {
    if (place.folded) return undefined
    const found = place.words.get(word)
    if (found !== undefined || !learn) return found
    if (place.words.size >= this.rules.maxSegmentCardinality) {
      // Everything learned below these words is lost, and learned again below the one node that is left.
      this.#foldAt(place)
      return undefined
    }
    if (!this.#learns(word)) return undefined
    // A copy: a substring keeps the whole string in memory, here a path that may be long.
    const own = Buffer.from(word).toString()
    const next = new Place(`/${own}`)
    place.words.set(own, next)
    return next
  }

  #restBelow(place: Place, learn: boolean): Place | undefined {
    if (place.rest === undefined && learn && this.#learns(restText)) place.rest = new Place(restText)
    return place.rest
  }

  /** Whether there is room for one more node. */
  #learns(text: string): boolean {
    const bytes = wordBytes + text.length
    if (this.#words >= maxWords || !this.#grows(bytes)) return false
    this.#words++
    this.bytes += bytes
    this.#strangers.clear()
    return true
  }

  /** Releases a node and everything below it. No deeper than `maxSegments`. */
  #forget({ text, words, rest }: Place): void {
    const bytes = wordBytes + (text === restText ? text.length : text.length - 1)
    this.#words--
    this.bytes -= bytes
    this.#grows(-bytes)
    for (const next of words.values()) this.#forget(next)
    if (rest !== undefined) this.#forget(rest)
  }

  #foldAt(place: Place): void {
    for (const next of place.words.values()) this.#forget(next)
    place.words.clear()
    place.folded = true
    this.forgetPaths()
  }
}

/** A node with words, none of which has words below it; undefined if no words are distinguished. */
function newestFork(place: Place): Place | undefined {
  const below = [...place.words.values()].reverse()
  if (place.rest !== undefined) below.push(place.rest)
  for (const next of below) {
    const fork = newestFork(next)
    if (fork !== undefined) return fork
  }
  return place.words.size > 0 ? place : undefined
}

interface Rules extends Omit<RouteOptions, 'patterns'> {
  readonly patterns: readonly Pattern[]
}

function rulesOf(options: RouteOptions): Rules {
  return { ...options, patterns: options.patterns.map(compilePattern) }
}

interface Pattern {
  readonly text: string
  matches(segments: readonly string[]): boolean
}

function compilePattern(text: string): Pattern {
  const parts = segmentsOf(text)
  const rest = parts.length > 0 && /^(\*\*|\{[^{}]*(\.\.\.|\*)\})$/.test(parts.at(-1)!)
  // Undefined: any segment.
  const wanted = (rest ? parts.slice(0, -1) : parts).map(part =>
    /^(\*|:.+|\{[^{}]*\})$/.test(part) ? undefined : part,
  )
  return {
    text,
    matches(segments) {
      if (rest ? segments.length < wanted.length : segments.length !== wanted.length) return false
      return wanted.every((part, i) => part === undefined || part === segments[i])
    },
  }
}

/** The segments that are not empty, without `;` parameters (RFC 3986, section 3.3). */
function segmentsOf(path: string): string[] {
  const segments: string[] = []
  for (const part of path.split('/', maxSplit)) {
    const end = part.indexOf(';')
    const segment = end < 0 ? part : part.slice(0, end)
    if (segment !== '') segments.push(segment)
  }
  return segments
}

/** A path of a thousand slashes is cut here; routes are far less deep. */
const maxSplit = 64
