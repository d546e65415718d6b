import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { ProcessView } from '../../identity/entities/process-table.ts'
import type { ExplainDocument } from '../../view/api/ui/documents.ts'

/** Why data of a process is missing or lost, as named in documents and tests. */
export type Cause =
  | 'agent'
  | 'kernel_thread'
  | 'switched_off'
  | 'kernel_feature_missing'
  | 'permission'
  | 'excluded_port'
  | 'not_selected'
  | 'instrumented'
  | 'container_not_visible'
  | 'started_before'
  | 'tls_without_symbols'
  | 'unknown_protocol'
  | 'sampled'
  | 'rate_limited'
  | 'queue_full'
  | 'endpoint_down'

/** Drop reasons that `svc explain` shows as the cause `rate_limited`, by what to raise. */
export const rateReasons = {
  budget: ['over_budget'],
  ring: ['ring_full'],
  totals: ['red_full'],
  perfBuffer: ['perf_full'],
  limit: ['rate_limited'],
} as const satisfies Readonly<Record<string, readonly DropReasonName[]>>

type Line = ExplainDocument['subjects'][number]['steps'][number]

/** A line of an explanation, with its cause. */
export interface Finding extends Line {
  readonly cause?: Cause
  /** It prevents all observation of the process. */
  readonly hides?: boolean
}

/** A process to explain, at one of its ports; 0 for all of them. */
export interface Subject {
  readonly pid: number
  readonly port: number
  readonly view: ProcessView
}
