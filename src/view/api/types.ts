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
  /** What is stuck, in words; only if `healthy` is false. */
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
      /** Both are a success; nothing was done where nothing had changed. */
      readonly kind: 'applied' | 'unchanged'
      readonly message: string
      /** In effect now. */
      readonly changed: readonly string[]
      /** Differ from the running configuration, and take effect after a restart. */
      readonly restart: readonly string[]
      readonly hash: string
    }
  | { readonly kind: 'invalid'; readonly message: string; readonly problems: readonly Problem[] }
  /** `part` could not take the new configuration. */
  | { readonly kind: 'failed'; readonly message: string; readonly part: string }
  /** `key` switches it off; '' while the agent ends. */
  | { readonly kind: 'off'; readonly message: string; readonly key: string }

/** How people open the page. */
export interface Browsers {
  readonly key: BrowserKey
  readonly tls: boolean
  /** Of the page, with the key. It goes to a person, and never into a log. */
  link(): string
}

/** The API's view of the running agent. All but the last group answer at once, from memory. */
export interface AgentView {
  health(): Health
  readiness(): ReadinessChecks
  /** Warnings of an agent that is ready. */
  warnings(): readonly string[]
  status(): StatusDocument
  ebpf(): EbpfDocument
  exporting(): ExportDocument
  /** Of single subsystems. */
  readonly pages: readonly StatusPage<void>[]
  /** The newest first; none where logs are not collected. */
  recentLogs(query: RecentLogQuery): readonly RecentLog[]
  /** The process with a number, or the processes on a port; 0 if not requested. */
  processes(pid: number, port: number): Promise<ProcessesDocument>
  pipeline(): PipelineDocument
  /** The whole effective configuration, secrets redacted. */
  config(): unknown
  vars(): VarsDocument
  /** Recent log records, one JSON object a line. */
  logs(): string
  readonly registry: Registry
  /** Data of the page and the commands; undefined: `self_telemetry.ui.enabled` is false. */
  readonly ui: UiSource | undefined
  /** Undefined where there is no page. */
  readonly browsers: Browsers | undefined
  /** Where the files of the page lie; '' where they were not built. */
  readonly pageDirectory: string
  readonly profiles: readonly ProfileKind[]

  reload(): Promise<ReloadResult>
  /** Exports the queued data, at most as long as a shutdown. */
  flush(): Promise<Omit<FlushDocument, 'status'>>
  /** A text says why it cannot be now: another one is being taken. Rejects where the signal aborted it. */
  profile(kind: string, seconds: number, debug: number, signal: AbortSignal): Promise<ProfileFile | string>

  /** Records processes of the host. Rejects where the signal aborted it. */
  takeProfile(request: ProfileRequest): Promise<TakenProfile | ProfileRefusal>
  /** A recording, in a format. */
  profileFile(taken: TakenProfile, request: ProfileRequest, format: ProfileFormat): Promise<ProfileFile>
}

/** One subsystem at start, as a person at a terminal reads it. */
export interface BannerLine {
  readonly state: 'ok' | 'limited' | 'off' | 'none' | 'failed'
  readonly name: string
  /** Summary, or the reason why it does not work. */
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
  /** A link that opens the page, for a terminal alone; undefined where there is no page. */
  pageLink(): string | undefined
  /** Applies a changed configuration; `cause` is the trigger. */
  reload(cause: ReloadCause): Promise<ReloadResult>
  /** Notes for the next run why this one ends. The first word counts. */
  ended(cause: RunCause, detail?: string): void
  /** Longest time for `stop`, of the configuration that runs. */
  readonly shutdownTimeoutMs: number
  /** Drains and ends everything within the configured shutdown timeout. Calling it again waits for the first call. */
  stop(): Promise<void>
}
