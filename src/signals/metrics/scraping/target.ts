import type { ScrapeJob } from './scrape-job.ts'

/** A scrape target, after relabelling. */
export interface Target {
  readonly job: ScrapeJob
  /** Identity of the target: the same for the same job, URL and labels, also in other processes. */
  readonly id: string
  /** With scheme, host, port, path and query; `unix:/path:/metrics` for a socket. */
  readonly url: string
  /** Labels of its series: no name begins with `__`; `job` and `instance` exist. */
  readonly labels: ReadonlyMap<string, string>
  /** Discovered labels, before relabelling. */
  readonly discovered: ReadonlyMap<string, string>
  readonly intervalMs: number
  readonly timeoutMs: number
}

/** A target that was dropped or is invalid, kept to show why it is not scraped. */
export interface DroppedTarget {
  readonly job: string
  readonly discovered: ReadonlyMap<string, string>
  /** `relabelling`, `shard`, `target_limit`, or a description of the fault. */
  readonly reason: string
}
