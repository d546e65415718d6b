import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { FairShare, isSameOwner, type Owner, type ShareLosses } from '../../../foundation/lib/fair-share.ts'
import { OwnerMap } from '../../../foundation/lib/owner-map.ts'
import { isIdentifier } from './route-segment.ts'

export interface RouteOptions {
  /**
   * Routes that the user knows, tried in their order before anything is guessed; the first that matches names the
   * route. `{name}`, `:name` and `*` stand for one segment, `{name...}` and `**` at the end for all that follow.
   */
  readonly patterns: readonly string[]
  /**
   * What becomes of a path that no pattern matches. `heuristic`: its route is guessed; `path`: the path itself is the
   * route (only for services with few paths); `wildcard`: the route is `/**`; `unset`: it has none.
   */
  readonly unmatched: 'heuristic' | 'path' | 'wildcard' | 'unset'
  /** How many words the heuristic tells apart below one prefix before they become `*`. */
  readonly maxSegmentCardinality: number
}

/**
 * Finds the route (`http.route`) of a path, for each service of an owner by itself. Guessing replaces what looks like an
 * identifier by `*`, and so does every further word below a prefix under which too many words were seen. The same
 * requests in the same order always give the same routes.
 *
 * What services learn is shared by owner (see `FairShare`). A service only ever goes from words to `*`, whatever others
 * do, so that the number of its routes has a bound: whoever has to give something up has words of its newest service
 * folded for good, and a service for which there is no room learns nothing.
 */
export class Routes {
  readonly #owners = new OwnerMap<OwnerRoutes>()
  readonly #room: FairShare
  readonly #mostPathBytes: number
  /** For services without room. */
  #crowd: ServiceRoutes
  #rules: Rules
  readonly #paths = new PathBytes()
  /** Owners without room for another service, until the next look at what may be forgotten. */
  readonly #full = new OwnerMap<true>()
  #refused = 0
  #taken = 0

  /** `maxBytes`: of what is learned, and half as much again for paths whose routes are known. */
  constructor(options: RouteOptions, maxBytes = usualBytes) {
    this.#rules = rulesOf(options)
    this.#room = new FairShare(maxBytes)
    this.#mostPathBytes = maxBytes / 2
    this.#crowd = this.#folded()
  }

  /**
   * Other options from now on. What a service's paths taught stays, so that routes that no change names stay as they
   * are; with another `maxSegmentCardinality` it is learned anew.
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

  /** Memory that is taken now, by estimate. */
  get bytes(): number {
    return this.#room.used + this.#paths.bytes
  }

  /** Services and words that were not learned for want of room, and times that words were folded to make room for others'. */
  get losses(): ShareLosses {
    return { refused: this.#refused, taken: this.#taken }
  }

  /** Forgets which route a path has; what paths taught stays, so that routes stay as they are. */
  shed(): number {
    const freed = this.#paths.bytes
    this.#forgetPaths()
    return freed
  }

  /** Forgets services that were not asked for in an hour. To be called now and then. */
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
   * The route of `path`, '' for none. `served` false (the service answered 404) guesses from what is known already and
   * learns nothing, so that a scanner's thousand paths do not spend the words that a prefix may have.
   */
  route(owner: Owner, service: string, path: string, served = true): string {
    const routes = this.#owners.get(owner)?.services.get(service) ?? this.#added(owner, service)
    routes.used = true
    const route = routes.route(path, served)
    if (this.#paths.bytes > this.#mostPathBytes) this.#forgetPaths()
    return route
  }

  /** The routes of a service that is new. */
  #added(owner: Owner, service: string): ServiceRoutes {
    if (this.#full.get(owner)) return this.#crowd
    const bytes = serviceBytes + service.length
    if (!this.#takes(owner, bytes)) {
      this.#full.set(owner, true)
      return this.#crowd
    }
    // Looked up behind that: it may have cost the owner, or another one, all that it had.
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

  /** A service's tree is to take so many bytes more, or less. False: there is no room for them. */
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

  /** Folds words of the newest service of `giver` that has some; where none has, its oldest is forgotten. */
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
  /** Those that may learn, the newest last. */
  learned: ServiceRoutes[]
}

/** Tells whether a path is one of `patterns`: an exact path, or a prefix that ends in `*`. */
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

/** Where nobody says how much memory there is. */
const usualBytes = 4 * 2 ** 20
/** A service that is not asked for so long is forgotten, and learned anew if it returns. */
const forgetMs = 3_600_000
const maxCachedPaths = 512
/** Characters. A longer path is routed anew each time: caches of it would hold megabytes for each service. */
const maxCachedPath = 256
/** Words that one service's tree may hold; a full tree learns no more. */
const maxWords = 2_000
const maxSegments = 10
/** Stands for a segment that is not told apart from others. */
const restText = '/*'
/** What a cache, its entries, a word and a service take beside their characters, measured. */
const cacheBytes = 1_600
const pathBytes = 160
const wordBytes = 320
const serviceBytes = 900

/** One place in the tree of words: what may come next. */
class Place {
  /** What it adds to a route. */
  readonly text: string
  readonly words = new Map<string, Place>()
  /** Below what is not told apart: identifiers and, once `folded`, all words. */
  rest: Place | undefined
  folded = false

  constructor(text: string) {
    this.text = text
  }
}

/** What all caches of paths take. */
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

  /** The path is not there yet. */
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
  /** Since somebody last looked, and when that was the case. */
  used = false
  usedMs = Number.NEGATIVE_INFINITY
  /** What it takes, without cached paths. */
  bytes: number
  readonly #known: PathCache
  /** Guesses for paths that were not served; any word learned may change them. */
  readonly #strangers: PathCache
  readonly #root = new Place('')
  #words = 0
  /** It learns nothing any more. */
  #isFolded = false
  readonly #grows: (bytes: number) => boolean

  /** `grows` is asked for room for more of what is learned, and told of less. */
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

  /** Tells words no longer apart in one place, the newest of the deepest. False: there were none, and it learns none any more. */
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

  /** Apart from `route`, whose every call would else pay for the closure. */
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

  /** The place below a word; undefined when it is not told apart from others. */
  #wordBelow(place: Place, word: string, learn: boolean): Place | undefined {
    if (place.folded) return undefined
    const found = place.words.get(word)
    if (found !== undefined || !learn) return found
    if (place.words.size >= this.rules.maxSegmentCardinality) {
      // What was learned below these words goes with them, and is learned again below the one place that is left.
      this.#foldAt(place)
      return undefined
    }
    if (!this.#learns(word)) return undefined
    // A copy: a part of a string keeps the whole of it in memory, here a path that may be long.
    const own = Buffer.from(word).toString()
    const next = new Place(`/${own}`)
    place.words.set(own, next)
    return next
  }

  #restBelow(place: Place, learn: boolean): Place | undefined {
    if (place.rest === undefined && learn && this.#learns(restText)) place.rest = new Place(restText)
    return place.rest
  }

  /** Whether there is room for one more place. */
  #learns(text: string): boolean {
    const bytes = wordBytes + text.length
    if (this.#words >= maxWords || !this.#grows(bytes)) return false
    this.#words++
    this.bytes += bytes
    this.#strangers.clear()
    return true
  }

  /** A place is let go of, and all below it. No deeper than `maxSegments`. */
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

/** A place with words, none of which has any below; undefined where no words are told apart. */
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

/** A path of a thousand slashes is cut here; the depth that routes reach is far less. */
const maxSplit = 64
