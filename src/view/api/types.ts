// Answers of the management API, and its view of the agent.

import type { Problem } from '../../config/index.ts'
import type { ProfileFile, ProfileKind } from '../../foundation/lib/profile-file.ts'
import type { Registry } from '../../foundation/lib/registry.ts'
import type { RecentLog, RecentLogQuery } from '../../foundation/model/recent-log.ts'
import type { RunCause } from '../../foundation/model/run-cause.ts'
import type {
  ProfileFormat,
  ProfileRefusal,
  ProfileRequest,
  TakenProfile,
} from '../../foundation/model/taken-profile.ts'
import type { BrowserKey } from './browser-key.ts'
import type { discoveryDocument, logsDocument, processesDocument } from './discovery-schemas.ts'
import type { Of } from './schema.ts'
import type {
  ebpfDocument,
  exportDocument,
  flushDocument,
  pipelineDocument,
  readinessDocument,
  statusDocument,
  varsDocument,
} from './schemas.ts'
import type { targetsDocument } from './scraping-schemas.ts'
import type { StatusPage } from './status-page.ts'
import type { UiSource } from './ui/source.ts'

export type { UiSource } from './ui/source.ts'

export interface Health {
  readonly healthy: boolean
  /** What is stuck; only if `healthy` is false. */
  readonly reason?: string
}

export type StatusDocument = Of<typeof statusDocument>
export type EbpfDocument = Of<typeof ebpfDocument>
export type ExportDocument = Of<typeof exportDocument>
export type QueueDocument = ExportDocument['queues']['traces']
export type DiscoveryDocument = Of<typeof discoveryDocument>
export type LogsDocument = Of<typeof logsDocument>
export type TargetsDocument = Of<typeof targetsDocument>
export type ProcessesDocument = Of<typeof processesDocument>
export type FlushDocument = Of<typeof flushDocument>
export type PipelineDocument = Of<typeof pipelineDocument>
export type VarsDocument = Of<typeof varsDocument>

/** `ok`, or `failed: ` and the reason. A subsystem that is switched off is `ok`. */
export type ReadinessChecks = Of<typeof readinessDocument>['checks']

/** A degraded subsystem: it does not work, or does less than requested. */
export type Degradation = StatusDocument['degraded'][number]

/** Cause of a reload: SIGHUP, the check of the files, or `POST /admin/reload`. */
export type ReloadCause = 'signal' | 'file' | 'request'

/** Result of a reload of the configuration. `message` is one sentence. */
export type ReloadResult =
  | {
      /** Both are a success; `unchanged`: nothing to do. */
      readonly kind: 'applied' | 'unchanged'
      readonly message: string
      /** In effect now. */
      readonly changed: readonly string[]
      /** Differ from the running configuration, and take effect after a restart. */
      readonly restart: readonly string[]
      readonly hash: string
    }
  | { readonly kind: 'invalid'; readonly message: string; readonly problems: readonly Problem[] }
  /** `part` could not apply the new configuration. */
  | { readonly kind: 'failed'; readonly message: string; readonly part: string }
  /** Reloading is off: `key` controls it; '' while the agent stops. */
  | { readonly kind: 'off'; readonly message: string; readonly key: string }

/** How users open the page. */
export interface Browsers {
  readonly key: BrowserKey
  readonly tls: boolean
  /** Link to the page, with the key. For users only: never log it. */
  link(): string
}

/** The API's view of the running agent. All but the last group answer immediately, from memory. */
export interface AgentView {
  health(): Health
  readiness(): ReadinessChecks
  /** Warnings of an agent that is ready. */
  warnings(): readonly string[]
  status(): StatusDocument
  ebpf(): EbpfDocument
  exporting(): ExportDocument
  /** Pages of single subsystems. */
  readonly pages: readonly StatusPage<void>[]
  /** Newest first; empty if logs are not collected. */
  recentLogs(query: RecentLogQuery): readonly RecentLog[]
  /** The process with a PID, or the processes on a port; 0 if not requested. */
  processes(pid: number, port: number): Promise<ProcessesDocument>
  pipeline(): PipelineDocument
  /** The whole effective configuration, secrets redacted. */
  config(): unknown
  vars(): VarsDocument
  /** Recent log records, one JSON object per line. */
  logs(): string
  readonly registry: Registry
  /** Data of the page and the commands; undefined: `self_telemetry.ui.enabled` is false. */
  readonly ui: UiSource | undefined
  /** Undefined where there is no page. */
  readonly browsers: Browsers | undefined
  /** Directory of the page's files; '' if they were not built. */
  readonly pageDirectory: string
  readonly profiles: readonly ProfileKind[]

  reload(): Promise<ReloadResult>
  /** Exports the queued data, at most as long as a shutdown. */
  flush(): Promise<Omit<FlushDocument, 'status'>>
  /** A text is the reason for a refusal: another profile is being taken. Rejects if the signal aborts it. */
  profile(kind: string, seconds: number, debug: number, signal: AbortSignal): Promise<ProfileFile | string>

  /** Records processes of the host. Rejects if the signal aborts it. */
  takeProfile(request: ProfileRequest): Promise<TakenProfile | ProfileRefusal>
  /** A recording, converted to a format. */
  profileFile(taken: TakenProfile, request: ProfileRequest, format: ProfileFormat): Promise<ProfileFile>
}

/** The line of one subsystem at start, for a terminal. */
export interface BannerLine {
  readonly state: 'ok' | 'limited' | 'off' | 'none' | 'failed'
  readonly name: string
  /** Summary, or the reason of the failure. */
  readonly detail: string
  /** How to fix it. */
  readonly hint?: string
}

/** An agent that has started. */
export interface RunningAgent {
  readonly view: AgentView
  banner(): readonly BannerLine[]
  /** URLs of the management API and their content; none if it is off. */
  links(): readonly { readonly what: string; readonly url: string }[]
  /** A link that opens the page, for terminals only; undefined without a page. */
  pageLink(): string | undefined
  /** Applies a changed configuration; `cause` is the trigger. */
  reload(cause: ReloadCause): Promise<ReloadResult>
  /** Records for the next run why this one ends. The first call counts. */
  ended(cause: RunCause, detail?: string): void
  /** Longest duration of `stop`, from the running configuration. */
  readonly shutdownTimeoutMs: number
  /** Drains and stops everything within the configured shutdown timeout. Later calls wait for the first. */
  stop(): Promise<void>
}
