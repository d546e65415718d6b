import { setMaxListeners } from 'node:events'
import { parseObject } from '../../../../foundation/lib/json-fields.ts'
import { FetchError, TargetClient } from '../fetch/target-client.ts'
import type { TargetGroup } from '../scrape-job.ts'
import type { SettingsOf, SourceKind, SourceOptions, TargetSource, TargetSourceState } from '../source.ts'
import { readGroup } from './_group-list.ts'
import { jsonElements } from './_json-list.ts'
import { refresh } from './_refresh.ts'
import { TargetGroupPublisher } from './_target-group-publisher.ts'

const maxTimeoutMs = 30_000
const maxBytes = 16 * 1024 * 1024
const maxJobs = 1_000
const maxJobsBytes = 1024 * 1024
const jobsAtOnce = 4
/** Stands for the name of a job in a URL. */
const jobWord = '{job}'
/** As required by Prometheus (http_sd). */
const jsonType = /^application\/json(?:;\s*charset=(?:"utf-8"|utf-8))?$/i

/**
 * Targets from a list of an HTTP service (`http_sd_configs`).
 *
 * A URL with `{job}` in its path, such as `http://allocator/jobs/{job}/targets?collector_id=NAME`, is that of a target
 * allocator (OpenTelemetry operator, cmd/otel-allocator): the path before `/{job}` lists the jobs, and each of them has
 * a list of targets. Their names are in `__meta_target_allocator_job`.
 */
class HttpTargets implements TargetSource {
  readonly #settings: SettingsOf<'http'>
  readonly #publisher: TargetGroupPublisher
  readonly #stopping = new AbortController()
  /** By URL: a client keeps its connection, and what it learned about its server. */
  readonly #clients = new Map<string, TargetClient>()

  constructor(settings: SettingsOf<'http'>, options: SourceOptions) {
    this.#settings = settings
    this.#publisher = new TargetGroupPublisher('http', options)
    // Each running request listens to it, and a target allocator has many at a time.
    setMaxListeners(0, this.#stopping.signal)
  }

  get state(): TargetSourceState {
    return this.#publisher.state
  }

  start(): void {
    const { url, refreshMs } = this.#settings
    const ask = () => (url.includes(jobWord) ? this.#askAllocator() : this.#askOne(url, url, new Map()))
    const failed = (error: unknown) => this.#failed(url, error)
    const all = async () => {
      await ask()
      this.#publisher.report(url, undefined)
      this.#publisher.known()
    }
    void refresh(refreshMs, this.#stopping.signal, all, failed)
  }

  stop(): void {
    this.#stopping.abort()
    for (const client of this.#clients.values()) client.close()
    this.#publisher.close()
  }

  #failed(url: string, error: unknown): void {
    if (this.#stopping.signal.aborted) return
    this.#publisher.report(url, {
      reason:
        error instanceof FetchError
          ? error.message
          : `cannot use the targets of ${shown(url)}: ${(error as Error).message}`,
      hint: 'check that the service of http_sd runs, and its response at this URL',
    })
  }

  /** Rejects if there is no valid list. */
  async #askOne(owner: string, url: string, more: ReadonlyMap<string, string>): Promise<void> {
    const extra = new Map([['__meta_url', withoutUser(url)], ...more])
    const groups = await this.#read(url, async (body, contentType) => {
      if (!jsonType.test(contentType.trim()))
        throw new Error(`expected content type application/json, got "${contentType.slice(0, 100)}"`)
      const read: TargetGroup[] = []
      for await (const element of jsonElements(body))
        read.push(readGroup(element, read.length, `${withoutUser(url)}:${read.length}`, extra, 'foreign'))
      return read
    })
    if (!this.#stopping.signal.aborted) this.#publisher.put(owner, groups)
  }

  /** Result of `use` for a body, which is valid until `use` resolves. Rejects with an `Error` with a reason. */
  async #read<Result>(
    url: string,
    use: (body: Buffer, contentType: string) => Promise<Result>,
  ): Promise<Result> {
    const timeoutMs = Math.min(maxTimeoutMs, Math.max(1_000, this.#settings.refreshMs))
    const fetched = await this.#clientFor(url).ask({ timeoutMs, stop: this.#stopping.signal })
    try {
      return await use(fetched.body, fetched.contentType)
    } finally {
      fetched.release()
    }
  }

  #clientFor(url: string): TargetClient {
    let client = this.#clients.get(url)
    if (client === undefined) {
      const { access, refreshMs } = this.#settings
      client = new TargetClient({
        url,
        access,
        compression: 'remote',
        bodyBytes: url === jobsUrl(this.#settings.url) ? maxJobsBytes : maxBytes,
        owner: 'http_sd',
        accept: 'application/json',
        headers: { 'X-Prometheus-Refresh-Interval-Seconds': String(refreshMs / 1000) },
      })
      this.#clients.set(url, client)
    }
    return client
  }

  /** Closes the clients of other URLs. */
  #keepClients(urls: ReadonlySet<string>): void {
    for (const [url, client] of this.#clients) {
      if (urls.has(url)) continue
      client.close()
      this.#clients.delete(url)
    }
  }

  async #askAllocator(): Promise<void> {
    const { url } = this.#settings
    const jobs = await this.#read(jobsUrl(url), async body => {
      const answer = parseObject(body)
      if (answer === undefined) throw new Error('the job list is not a JSON object')
      return Object.keys(answer)
    })
    if (jobs.length > maxJobs) throw new Error(`more than ${maxJobs} jobs`)
    const ofJob = (job: string) => url.replaceAll(jobWord, encodeURIComponent(job))
    this.#keepClients(new Set([jobsUrl(url), ...jobs.map(ofJob)]))
    const left = [...jobs]
    const faults: Error[] = []
    const next = async (): Promise<void> => {
      for (let job = left.shift(); job !== undefined; job = left.shift()) {
        const more = new Map([['__meta_target_allocator_job', job]])
        await this.#askOne(job, ofJob(job), more).catch(error => faults.push(error as Error))
      }
    }
    await Promise.all(Array.from({ length: jobsAtOnce }, next))
    if (this.#stopping.signal.aborted) return
    this.#publisher.keepOnly(new Set(jobs))
    if (faults[0] !== undefined) throw faults[0]
  }
}

/** Source kind for `http_sd_configs`, including target allocators. */
export const httpSource: SourceKind<'http'> = {
  kind: 'http',
  open: (settings, options) => new HttpTargets(settings, options),
}

/** For `http://allocator/jobs/{job}/targets?collector_id=x`: `http://allocator/jobs`; '' for other URLs. */
function jobsUrl(url: string): string {
  return url.slice(0, Math.max(0, url.indexOf(jobWord))).replace(/\/+$/, '')
}

/** Labels are shown to users. */
function withoutUser(url: string): string {
  return url.replace(/^([a-z]+:\/\/)[^/?#]*@/i, '$1')
}

/** Without parts that may contain a password or a token. */
function shown(url: string): string {
  return withoutUser(url).replace(/\?.*$/s, '')
}
