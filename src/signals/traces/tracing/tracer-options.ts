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

/** Settings of a tracer that can change at run time. Always replaced as a whole. */
export interface TracerRules {
  /** Part of the traces that is kept, 0 to 1. */
  readonly ratio: number
  readonly alwaysErrors: boolean
  readonly alwaysSlow: boolean
  readonly slowNs: number
  /** Whether trace context is read from `traceparent` headers. */
  readonly readContext: boolean
  readonly excludedPath: (path: string) => boolean
}

export interface TracerOptions {
  readonly protocols: readonly Protocol[]
  readonly scope: Scope
  readonly red: RedTable
  /** Bucket bounds in seconds for `counted`; they include the bounds of all protocol histograms. */
  readonly countedBounds: readonly number[]
  /** The process of this side of a connection. */
  readonly resourceOf: (connection: Connection) => Resource
  /** Takes finished spans. The span is reused. */
  readonly spans: { add(resource: Resource, scope: Scope, span: Span): void }
  /** Counts dropped spans, by reason. */
  readonly drop: (reason: DropReasonName, spans: number) => void
  /** Stops the kernel side from passing on bytes of a connection, by its id. */
  readonly refuse: (connection: number) => void
  readonly rules: TracerRules
  /** Called for each export of an application's own spans that a receiver accepted. */
  readonly exports?: (connection: Connection) => void
  /** Why a process is not reported: `not_selected`, or `instrumented` for spans only. */
  readonly hidden?: (connection: Connection) => '' | 'not_selected' | 'instrumented'
  /** Why a call has no span because there are too many: `over_budget` or `cpu_limit`, or '' if it has one. */
  readonly overBudget?: (operation: Operation, from: Resource) => '' | 'over_budget' | 'cpu_limit'
  /**
   * Called once for each request, by the rules of request metrics except that excluded paths are left out: when both of
   * its sides have ended, or the other one was not seen for two seconds.
   */
  readonly edge?: (request: RequestEdge) => void
  /** Whether an address belongs to this host, so that the other side may be seen too. */
  readonly isLocal: (address: string) => boolean
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly clock: WallClock
  readonly governor?: MemoryGovernor
}
