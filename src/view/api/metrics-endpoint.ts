// The host metrics over HTTP: the pages of the replaced exporter, and the agent's own additions.

import { promisify } from 'node:util'
import { constants, gzip, gzipSync } from 'node:zlib'
import type { Logger } from '../../foundation/lib/logger.ts'
import { acceptsGzip, openMetricsText, prefersOpenMetrics } from './accept.ts'
import { type Answer, answer, headersOnly, json, plainFailure } from './answer.ts'
import { Dispatcher, type PolicySettings } from './dispatch.ts'
import { landingPage } from './landing-page.ts'
import { type ApiLimits, defaultLimits } from './listeners.ts'
import type { ApiRequest, Route } from './operation.ts'

/** The name of the server in messages. */
export const metricsSubject = 'the host metrics'

/** The collectors, as the endpoint uses them. */
export interface MetricsSource {
  /** First word of the metrics' names. */
  readonly namespace: string
  /** Names of the collectors that are on. */
  readonly enabled: readonly string[]
  /** Whether a collector of that name exists, on or off. */
  knows(name: string): boolean
  /** Reads some of the enabled collectors, and returns their page. */
  scrape(scrape: Scrape): Promise<string>
  /** Why there is no data yet; '' if there is. */
  notReady(): string
}

export interface Scrape {
  /** In the order of `enabled`. */
  readonly collectors: readonly string[]
  readonly openMetrics: boolean
  /** Time that collectors may wait for their input. */
  readonly withinMs: number
}

/** Checks of a request before its page is made. */
export interface Admission {
  /** Sent instead of the page. */
  readonly refusal?: Answer
  /** Further headers of the answer, whether refusal or page. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Limits of scrapes. */
export interface ScrapeBounds {
  /** Concurrent scrapes; 0 for no limit. */
  readonly maxRequests: number
  /** Maximum time of a scrape. The client may request less. */
  readonly timeoutMs: number
}

export interface MetricsEndpointOptions extends ScrapeBounds {
  readonly source: MetricsSource
  /** Path of the metrics page. */
  readonly path: string
  readonly title: string
  readonly version: string
  /** Pages that the replaced exporter does not have; if absent, there are none. */
  readonly extended?: {
    /** The document of `/metrics/description`. */
    description(): unknown
  }
  readonly admit?: (request: ApiRequest) => Promise<Admission>
  /** If absent, any name is accepted. */
  readonly names?: EndpointNames
  readonly log: Logger
  readonly limits?: Partial<ApiLimits>
}

/** Accepted names of the endpoint, besides addresses and `localhost`. */
export interface EndpointNames {
  /** Current names of this host. */
  readonly own: () => Iterable<string>
  /** Additional names, as in `self_telemetry.allowed_hosts`. */
  readonly allowed: readonly string[]
}

/** Scrapes since the start by status, and those in progress. */
export interface ScrapeStats {
  readonly answered: Readonly<Record<200 | 500 | 503, number>>
  readonly inFlight: number
}

/**
 * Level 1: a third of the time of level 6 for a tenth more bytes (measured on pages of 65 KB and 390 KB). A smaller
 * state than the default is a sixth faster at no cost: its memory is not mapped again each time.
 */
const compression = { level: constants.Z_BEST_SPEED, memLevel: 7, windowBits: 14 }
/**
 * Largest page to compress in this thread, which takes a millisecond or two. A larger one, as of a host with very many
 * disks or control groups, goes to another thread, which for a small one would cost half as much again.
 */
const mostAtOnce = 256 * 1024
const compressed = promisify<Buffer, typeof compression, Buffer>(gzip)

/** Paths for kubelets and load balancers, under any host name; they contain nothing confidential. */
const probes: readonly string[] = ['/health', '/ready', '/live']

/** A scrape may take this long even if its client announces less time. */
const leastMs = 500

const plainText = 'text/plain; version=0.0.4; charset=utf-8'
const prose = 'text/plain; charset=utf-8'

/** Open to all clients under accepted names: this endpoint has no tokens, other origins or rate limits. */
const open: Omit<PolicySettings, 'allowed_hosts'> = {
  debug: false,
  auth: { enabled: false, bearer_token: '', bearer_tokens: [], exempt: [] },
  admin: { allow_remote: true },
  cors: { enabled: false, allowed_origins: [] },
  rate_limit: { enabled: false, requests_per_second: 0 },
}

/** A page being read, shared by all clients with the same request. */
interface Reading {
  /** On the clock of `performance.now()`. */
  readonly endsMs: number
  readonly page: Promise<Page>
}

/** A page in the requested encodings. */
class Page {
  readonly plain: Buffer
  #gzip: Buffer | Promise<Buffer> | undefined

  constructor(text: string) {
    this.plain = Buffer.from(text)
  }

  get gzip(): Buffer | Promise<Buffer> {
    const { plain } = this
    this.#gzip ??= plain.length <= mostAtOnce ? gzipSync(plain, compression) : compressed(plain, compression)
    return this.#gzip
  }
}

export class MetricsEndpoint {
  readonly limits: ApiLimits
  readonly dispatcher: Dispatcher
  readonly #options: MetricsEndpointOptions
  readonly #readings = new Map<string, Reading>()
  readonly #answered = { 200: 0, 500: 0, 503: 0 }
  #source: MetricsSource
  #bounds: ScrapeBounds
  #underWay = 0

  constructor(options: MetricsEndpointOptions) {
    const { source, log, limits, names } = options
    this.#options = options
    this.#source = source
    this.#bounds = options
    this.limits = { ...defaultLimits, ...limits }
    this.dispatcher = new Dispatcher({
      subject: metricsSubject,
      operations: this.#routes(),
      fallback: this.#route('GET', '*', () => plainFailure(404, '404 page not found')),
      failure: plainFailure,
      settings: { ...open, allowed_hosts: names?.allowed ?? [] },
      arrival: { tls: false, port: 0 },
      ...(names && { ownNames: names.own }),
      urlBytes: this.limits.urlBytes,
      bodyBytes: this.limits.bodyBytes,
      log,
      observe: undefined,
    })
  }

  /** Later scrapes use these collectors, limits and accepted names. */
  use(source: MetricsSource, bounds: ScrapeBounds, allowedHosts: readonly string[]): void {
    this.dispatcher.adopt(this.dispatcher.policy({ ...open, allowed_hosts: allowedHosts }))
    this.#source = source
    this.#bounds = bounds
    this.#readings.clear()
  }

  stats(): ScrapeStats {
    return { answered: this.#answered, inFlight: this.#underWay }
  }

  #routes(): Route[] {
    const { path, title, version, extended } = this.#options
    const scrape = (request: ApiRequest) => this.#scrape(request)
    const routes = [this.#route('GET', path, scrape), this.#route('POST', path, scrape)]
    const links = new Map([[path, 'Metrics']])
    if (extended !== undefined) {
      const pages: readonly (readonly [path: string, what: string, handle: () => Answer])[] = [
        ['/metrics/description', 'Metric descriptions', () => json(200, extended.description())],
        ['/health', 'Health', () => json(200, this.#health())],
        ['/ready', 'Readiness', () => this.#ready()],
        ['/live', 'Liveness', () => answer(200, prose, Buffer.from('OK'))],
      ]
      for (const [at, what, handle] of pages) {
        routes.push({ ...this.#route('GET', at, handle), ...(probes.includes(at) && { tag: 'probes' }) })
        links.set(at, what)
      }
    }
    if (path !== '/') {
      const page = Buffer.from(landingPage(title, version, links))
      routes.push(this.#route('GET', '/', () => answer(200, 'text/html; charset=UTF-8', page)))
    }
    return routes
  }

  #route(
    method: 'GET' | 'POST',
    path: string,
    handle: (request: ApiRequest) => Answer | Promise<Answer>,
  ): Route {
    const { admit } = this.#options
    const route = { method, path, access: 'open', anyBody: true } as const
    if (admit === undefined) return { ...route, handle }
    return {
      ...route,
      handle: async request => {
        const { refusal, headers } = await admit(request)
        const made = refusal ?? (await handle(request))
        return headers === undefined ? made : { ...made, headers: { ...made.headers, ...headers } }
      },
    }
  }

  #health() {
    const { enabled, namespace } = this.#source
    return { status: 'healthy', collectors: enabled.length, namespace }
  }

  #ready(): Answer {
    const why = this.#source.notReady()
    return why === ''
      ? answer(200, prose, Buffer.from('Ready'))
      : answer(503, prose, Buffer.from(`Not Ready: ${why}`))
  }

  async #scrape(request: ApiRequest): Promise<Answer> {
    const collectors = this.#selected(request.query)
    if (typeof collectors === 'string') return answer(400, prose, Buffer.from(collectors))
    const { maxRequests } = this.#bounds
    if (maxRequests > 0 && this.#underWay >= maxRequests) {
      this.#answered[503]++
      return plainFailure(503, `Limit of concurrent requests reached (${maxRequests}), try again later.`)
    }
    const { headers, method, signal } = request
    const openMetrics = this.#options.extended !== undefined && prefersOpenMetrics(headers.accept)
    const zipped = acceptsGzip(headers['accept-encoding'])
    const type = openMetrics ? openMetricsText : plainText
    const encoding = zipped ? { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' } : undefined
    if (method === 'HEAD') {
      this.#answered[200]++
      return headersOnly(type, encoding)
    }
    this.#underWay++
    try {
      const withinMs = this.#deadline(headers['x-prometheus-scrape-timeout-seconds'])
      const page = await this.#page({ collectors, openMetrics, withinMs })
      signal.throwIfAborted()
      const body = zipped ? await page.gzip : page.plain
      this.#answered[200]++
      return answer(200, type, body, encoding)
    } catch (error) {
      if (!signal.aborted) this.#answered[500]++
      throw error
    } finally {
      this.#underWay--
    }
  }

  /** A client with the same request gets the result of the current reading, if that ends in time. */
  #page(scrape: Scrape): Promise<Page> {
    const key = `${scrape.openMetrics} ${scrape.collectors.join()}`
    const endsMs = performance.now() + scrape.withinMs
    const shared = this.#readings.get(key)
    if (shared !== undefined && shared.endsMs <= endsMs) return shared.page
    const page = this.#source.scrape(scrape).then(text => new Page(text))
    const reading = { endsMs, page }
    this.#readings.set(key, reading)
    const forget = () => {
      if (this.#readings.get(key) === reading) this.#readings.delete(key)
    }
    page.then(forget, forget)
    return page
  }

  /** The collectors that a query selects, or an error with the text of the replaced exporter. */
  #selected(query: string): readonly string[] | string {
    const { enabled } = this.#source
    if (query === '') return enabled
    const parameters = new URLSearchParams(query)
    const collect = parameters.getAll('collect[]')
    const exclude = parameters.getAll('exclude[]')
    if (collect.length > 0 && exclude.length > 0)
      return 'Combined collect and exclude queries are not allowed.'
    for (const name of collect) {
      if (enabled.includes(name)) continue
      const what = this.#source.knows(name) ? 'disabled' : 'missing'
      return `Couldn't create filtered metrics handler: couldn't create collector: ${what} collector: ${name}`
    }
    const selected = enabled.filter(name =>
      collect.length > 0 ? collect.includes(name) : !exclude.includes(name),
    )
    // The replaced exporter treats an empty result as no filter.
    return selected.length > 0 ? selected : enabled
  }

  /**
   * Milliseconds: half a second less than the client waits, so that the answer arrives in time, but never so few that
   * punctual collectors become late.
   */
  #deadline(header: string | string[] | undefined): number {
    const { timeoutMs } = this.#bounds
    const patienceMs = Number(header) * 1000
    if (!(patienceMs > 0)) return timeoutMs
    return Math.min(timeoutMs, Math.max(patienceMs - 500, leastMs))
  }
}
