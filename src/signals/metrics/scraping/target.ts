import type { ScrapeJob } from './scrape-job.ts'

/** A thing to scrape, after relabelling. */
export interface Target {
  readonly job: ScrapeJob
  /** The same for the same job, URL and labels, also in another process: what a target is known by. */
  readonly id: string
  /** With scheme, host, port, path and query; `unix:/path:/metrics` where the address is a socket. */
  readonly url: string
  /** What its series get: no name begins with `__`; `job` and `instance` are there. */
  readonly labels: ReadonlyMap<string, string>
  /** As discovery told it, before relabelling. */
  readonly discovered: ReadonlyMap<string, string>
  readonly intervalMs: number
  readonly timeoutMs: number
}

/** One that relabelling dropped, or that is no target: kept for those who ask why it is not scraped. */
export interface DroppedTarget {
  readonly job: string
  readonly discovered: ReadonlyMap<string, string>
  /** `relabelling`, `shard`, `target_limit`, or what is wrong with it, in words. */
  readonly reason: string
}
