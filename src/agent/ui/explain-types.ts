import type { ExplainDocument } from '../../api/ui/documents.ts'
import type { ProcessView } from '../../entities/process-table.ts'

/** Why something of a process is not seen, or lost, as documents and tests name it. */
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

type Line = ExplainDocument['subjects'][number]['lines'][number]

/** A line, and the cause that it tells. */
export interface Finding extends Line {
  readonly cause?: Cause
  /** Nothing of the process is seen because of it. */
  readonly hides?: boolean
}

/** A process that is explained, at one of its ports; 0: at all of them. */
export interface Subject {
  readonly pid: number
  readonly port: number
  readonly view: ProcessView
}
