// What the API asks of the agent for `/ui/api/`.

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
 * A document that goes on. It is pulled, so that a slow reader costs no memory: what came meanwhile is left out and
 * counted, or told at once. Nothing is computed between two calls but what has to be gathered as it comes.
 */
export interface Live<T> {
  /** Time from one look to the next. */
  readonly everyMs: number
  /** Lines that are new; the first call tells what there is, in one line at the least. */
  next(): readonly T[] | Promise<readonly T[]>
  /** Nobody looks any longer. Called once. */
  close?(): void
}

export type ProfileKind = 'cpu' | 'off_cpu' | 'memory'
export type SignalName = 'traces' | 'metrics' | 'logs' | 'profiles'

export interface TracesQuery {
  /** Empty texts and zeros ask for nothing. */
  readonly service: string
  readonly errors: boolean
  readonly min_ms: number
  readonly max_ms: number
  /** In names and attribute values, without regard to case. */
  readonly q: string
  /** Milliseconds back from now; a trace is in between when it began there. 0: no bound. */
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
  /** Milliseconds back from now. `until` 0: now. `since` 0: the whole window. */
  readonly since_ms: number
  readonly until_ms: number
  /** The same of what it is compared with; both 0: nothing. */
  readonly base_since_ms: number
  readonly base_until_ms: number
  /** Nodes at most. */
  readonly limit: number
}

export interface TapQuery {
  readonly signal: SignalName
  readonly service: string
  readonly errors: boolean
  readonly min_ms: number
  /** Items are told in the JSON form of OTLP, too. */
  readonly otlp: boolean
}

export interface TryQuery {
  readonly signal: SignalName
  /** YAML of what stands below `pipeline:`. */
  readonly rules: string
  /** To be tried on, at most. */
  readonly items: number
  /** Nobody waits for it any longer. */
  readonly left: AbortSignal
}

/** All but `agent`, `doctor`, `explain`, `metrics` and `tryRules` answer from memory. */
export interface UiSource {
  overview(seconds: number): Live<OverviewLine>
  map(seconds: number): Live<MapLine>
  service(name: string): Live<ServiceLine>
  traces(query: TracesQuery): Live<TracesLine>
  /** Undefined: nothing of it is kept. */
  trace(traceId: string): TraceDocument | undefined
  metrics(): Promise<MetricsDocument>
  /** Undefined: there is no such metric. */
  series(name: string): Live<SeriesLine> | undefined
  logs(query: LogsQuery): Live<LogsLine>
  profiles(kind: ProfileKind, service: string): Live<ProfilesLine>
  flame(query: FlameQuery): FlameDocument
  pipeline(): Live<PipelineLine>
  tap(query: TapQuery): Live<TapLine>
  /** Undefined: another one is under way. */
  tryRules(query: TryQuery): Promise<TryDocument> | undefined
  agent(): Promise<AgentDocument>
  doctor(): Promise<DoctorDocument>
  /** The number of a process, a port, or the name of a service, an executable, a container or a pod. */
  explain(target: string): Promise<ExplainDocument>
}
