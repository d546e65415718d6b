import type { MemoryGovernor } from '../../../foundation/lib/memory-governor.ts'
import type { WallClock } from '../../../foundation/lib/wall-clock.ts'
import type { Connection } from '../../../foundation/model/connection.ts'
import type { DropReasonName } from '../../../foundation/model/drop-reasons.ts'
import type { Protocol } from '../../../foundation/model/protocol.ts'
import type { RequestEdge } from '../../../foundation/model/request-edge.ts'
import type { Resource, Scope } from '../../../foundation/model/resource.ts'
import type { Span } from '../../../foundation/model/span.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import type { RedTable } from './red.ts'

/** What of a tracer can change while it runs. Always replaced as a whole. */
export interface TracerRules {
  /** Part of the traces that is kept, 0 to 1. */
  readonly ratio: number
  readonly alwaysErrors: boolean
  readonly alwaysSlow: boolean
  readonly slowNs: number
  /** Whether `traceparent` headers are taken over. */
  readonly readContext: boolean
  readonly excludedPath: (path: string) => boolean
}

export interface TracerOptions {
  readonly protocols: readonly Protocol[]
  readonly scope: Scope
  readonly red: RedTable
  /** Bounds in seconds of the buckets that `counted` takes: those of all histograms of protocols are among them. */
  readonly countedBounds: readonly number[]
  /** The process of this side of a connection. */
  readonly resourceOf: (connection: Connection) => Resource
  /** Takes finished spans. The span is reused. */
  readonly spans: { add(resource: Resource, scope: Scope, span: Span): void }
  /** Counts spans that are not passed on, by reason. */
  readonly drop: (reason: DropReasonName, spans: number) => void
  /** Has the kernel side pass on no more bytes of a connection, by its id. */
  readonly refuse: (connection: number) => void
  readonly rules: TracerRules
  /** Called for each export of spans that an application sent itself, and that a receiver took. */
  readonly exports?: (connection: Connection) => void
  /** Why nothing is reported of a process: `not_selected`, or `instrumented` for spans only. */
  readonly hidden?: (connection: Connection) => '' | 'not_selected' | 'instrumented'
  /** Why a call has no span, as there are too many: `over_budget` or `cpu_limit`, or '' where it has one. */
  readonly overBudget?: (operation: Operation, from: Resource) => '' | 'over_budget' | 'cpu_limit'
  /**
   * Called once for each request, by the rules of request metrics, but for paths that are excluded: when both of its
   * sides are over, or when the other one was not seen for two seconds.
   */
  readonly edge?: (request: RequestEdge) => void
  /** Whether an address belongs to this host, so that the other side may be seen too. */
  readonly isLocal: (address: string) => boolean
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  readonly clock: WallClock
  readonly governor?: MemoryGovernor
}
