import { BoundedMap } from '../lib/bounded-map.ts'
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
 * Finds the route (`http.route`) of a path, for each service by itself. Guessing replaces what looks like an
 * identifier by `*`, and so does every further word below a prefix under which too many words were seen. The same
 * requests in the same order always give the same routes. Memory is bounded for any number of services and paths.
 */
export class Routes {
  private readonly services = new BoundedMap<string, ServiceRoutes>(maxServices)
  private rules: Rules

  constructor(options: RouteOptions) {
    this.rules = rulesOf(options)
  }

  /**
   * Other options from now on. What a service's paths taught stays, so that routes that no change names stay as they
   * are; with another `maxSegmentCardinality` it is learned anew.
   */
  change(options: RouteOptions): void {
    const rules = rulesOf(options)
    this.rules = rules
    this.services.forEach(routes => {
      routes.change(rules)
    })
  }

  /** Memory that is taken now, by estimate. */
  get bytes(): number {
    let bytes = 0
    this.services.forEach(routes => {
      bytes += routes.bytes
    })
    return bytes
  }

  /** Forgets which route a path has; what paths taught stays, so that routes stay as they are. */
  shed(bytes: number): number {
    const before = this.bytes
    this.services.forEach(routes => {
      if (before - this.bytes < bytes) routes.forgetPaths()
    })
    return before - this.bytes
  }

  /**
   * The route of `path`, '' for none. `served` false (the service answered 404) guesses from what is known already and
   * learns nothing, so that a scanner's thousand paths do not spend the words that a prefix may have.
   */
  route(service: string, path: string, served = true): string {
    let routes = this.services.get(service)
    if (routes === undefined) {
      routes = new ServiceRoutes(this.rules)
      this.services.set(service, routes)
    }
    return routes.route(path, served)
  }
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

const maxServices = 128
const maxCachedPaths = 512
/** Characters. A longer path is routed anew each time: caches of it would hold megabytes for each service. */
const maxCachedPath = 256
/** Words that one service's tree may hold; a full tree learns no more. */
const maxWords = 2_000
const maxSegments = 10
/** What an entry of a cache and a word take beside their characters, measured. */
const pathBytes = 160
const wordBytes = 320

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

/** Routes by path, with what they take. */
class PathCache {
  private readonly routes = new BoundedMap<string, string>(maxCachedPaths, (path, route) => {
    this.characters -= path.length + route.length
  })
  private characters = 0

  get bytes(): number {
    return this.characters + this.routes.size * pathBytes
  }

  get(path: string): string | undefined {
    return this.routes.get(path)
  }

  /** The path is not there yet. */
  set(path: string, route: string): void {
    this.routes.set(path, route)
    this.characters += path.length + route.length
  }

  clear(): void {
    if (this.routes.size === 0) return
    this.routes.clear()
    this.characters = 0
  }
}

class ServiceRoutes {
  private readonly known = new PathCache()
  /** Guesses for paths that were not served; any word learned may change them. */
  private readonly strangers = new PathCache()
  private root = new Place('')
  private words = 0
  private rules: Rules

  constructor(rules: Rules) {
    this.rules = rules
  }

  get bytes(): number {
    return this.known.bytes + this.strangers.bytes + this.words * wordBytes
  }

  forgetPaths(): void {
    this.known.clear()
    this.strangers.clear()
  }

  change(rules: Rules): void {
    if (rules.maxSegmentCardinality !== this.rules.maxSegmentCardinality) {
      this.root = new Place('')
      this.words = 0
    }
    this.rules = rules
    this.forgetPaths()
  }

  route(path: string, served: boolean): string {
    return this.known.get(path) ?? (served ? undefined : this.strangers.get(path)) ?? this.find(path, served)
  }

  /** Apart from `route`, whose every call would else pay for the closure. */
  private find(path: string, served: boolean): string {
    const segments = segmentsOf(path)
    const named = this.rules.patterns.find(pattern => pattern.matches(segments))
    const route = named?.text ?? this.unmatched(path, segments, served)
    const guessed = named === undefined && this.rules.unmatched === 'heuristic'
    const cache = guessed && !served ? this.strangers : this.known
    if (path.length <= maxCachedPath) cache.set(path, route)
    return route
  }

  private unmatched(path: string, segments: readonly string[], served: boolean): string {
    switch (this.rules.unmatched) {
      case 'heuristic':
        return this.guess(segments, served)
      case 'path':
        return path
      case 'wildcard':
        return '/**'
      case 'unset':
        return ''
    }
  }

  private guess(segments: readonly string[], learn: boolean): string {
    let route = ''
    let place: Place | undefined = this.root
    for (let i = 0; i < segments.length; i++) {
      if (i === maxSegments) return `${route}/**`
      const segment: string = segments[i]!
      const next: Place | undefined =
        place === undefined || isIdentifier(segment) ? undefined : this.wordBelow(place, segment, learn)
      route += next?.text ?? '/*'
      place = next ?? (place === undefined ? undefined : this.restBelow(place, learn))
    }
    return route === '' ? '/' : route
  }

  /** The place below a word; undefined when it is not told apart from others. */
  private wordBelow(place: Place, word: string, learn: boolean): Place | undefined {
    if (place.folded) return undefined
    const found = place.words.get(word)
    if (found !== undefined || !learn) return found
    if (place.words.size >= this.rules.maxSegmentCardinality) {
      // What was learned below these words goes with them, and is learned again below the one place that is left.
      this.words -= wordsBelow(place)
      place.words.clear()
      place.folded = true
      this.forgetPaths()
      return undefined
    }
    if (this.words >= maxWords) return undefined
    // A copy: a part of a string keeps the whole of it in memory, here a path that may be long.
    const own = Buffer.from(word).toString()
    const next = new Place(`/${own}`)
    place.words.set(own, next)
    this.learned()
    return next
  }

  private restBelow(place: Place, learn: boolean): Place | undefined {
    if (place.rest === undefined && learn && this.words < maxWords) {
      place.rest = new Place('/*')
      this.learned()
    }
    return place.rest
  }

  private learned(): void {
    this.words++
    this.strangers.clear()
  }
}

/** How many places hang below the words of `place`. No deeper than `maxSegments`. */
function wordsBelow(place: Place): number {
  let count = 0
  for (const next of place.words.values()) count += 1 + allBelow(next)
  return count
}

function allBelow(place: Place): number {
  return wordsBelow(place) + (place.rest === undefined ? 0 : 1 + allBelow(place.rest))
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
