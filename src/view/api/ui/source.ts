// The agent's data for `/ui/api/`.

import type {
  AgentDocument,
  DoctorDocument,
  ExplainDocument,
  FlameDocument,
  LogsLine,
  MapLine,
  MetricsDocument,
  OverviewLine,
  PipelineLine,
  ProfilesLine,
  SeriesLine,
  ServiceLine,
  TapLine,
  TraceDocument,
  TracesLine,
  TryDocument,
} from './documents.ts'

/**
 * A followed document. It is pulled, so that a slow reader costs no memory: missed updates are skipped and counted, or
 * sent at once. Between two calls nothing is computed, except data that must be collected as it arrives.
 */
export interface Live<T> {
  /** Polling interval. */
  readonly everyMs: number
  /** New lines; the first call returns the current state, in at least one line. */
  next(): readonly T[] | Promise<readonly T[]>
  /** The reader has gone. Called once. */
  close?(): void
}

export type ProfileKind = 'cpu' | 'off_cpu' | 'memory'
export type SignalName = 'traces' | 'metrics' | 'logs' | 'profiles'

export interface TracesQuery {
  /** Empty texts and zeros do not filter. */
  readonly service: string
  readonly errors: boolean
  readonly min_ms: number
  readonly max_ms: number
  /** In names and attribute values, case-insensitive. */
  readonly q: string
  /** Milliseconds before now, in which the trace began. 0: no bound. */
  readonly since_ms: number
  readonly until_ms: number
  readonly sort: 'slow' | 'new' | 'errors'
  readonly limit: number
}

export interface LogsQuery {
  readonly service: string
  readonly min_severity: number
  readonly q: string
  readonly trace_id: string
  readonly pid: number
  readonly limit: number
}

export interface FlameQuery {
  readonly kind: ProfileKind
  readonly service: string
  /** Milliseconds before now. `until` 0: now. `since` 0: the whole window. */
  readonly since_ms: number
  readonly until_ms: number
  /** The same for the profile to compare with; both 0: none. */
  readonly base_since_ms: number
  readonly base_until_ms: number
  /** Maximum number of nodes. */
  readonly limit: number
}

export interface TapQuery {
  readonly signal: SignalName
  readonly service: string
  readonly errors: boolean
  readonly min_ms: number
  /** Include items as OTLP JSON. */
  readonly otlp: boolean
}

export interface TryQuery {
  readonly signal: SignalName
  /** YAML, as below `pipeline:`. */
  readonly rules: string
  /** Maximum number of items to try them on. */
  readonly items: number
  /** Aborts when the reader has gone. */
  readonly left: AbortSignal
}

/** All but `agent`, `doctor`, `explain`, `metrics` and `tryRules` answer from memory. */
export interface UiSource {
  overview(seconds: number): Live<OverviewLine>
  map(seconds: number): Live<MapLine>
  service(name: string): Live<ServiceLine>
  traces(query: TracesQuery): Live<TracesLine>
  /** Undefined: no spans are kept. */
  trace(traceId: string): TraceDocument | undefined
  metrics(): Promise<MetricsDocument>
  /** Undefined: no such metric. */
  series(name: string): Live<SeriesLine> | undefined
  logs(query: LogsQuery): Live<LogsLine>
  profiles(kind: ProfileKind, service: string): Live<ProfilesLine>
  flame(query: FlameQuery): FlameDocument
  pipeline(): Live<PipelineLine>
  tap(query: TapQuery): Live<TapLine>
  /** Undefined: another trial is in progress. */
  tryRules(query: TryQuery): Promise<TryDocument> | undefined
  agent(): Promise<AgentDocument>
  doctor(): Promise<DoctorDocument>
  /** A PID, a port, or the name of a service, an executable, a container or a pod. */
  explain(target: string): Promise<ExplainDocument>
}
