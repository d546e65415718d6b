import type { DropReasonName } from '../../foundation/model/drop-reasons.ts'
import type { CaptureCounter } from './capture.ts'

/** Counters of the kernel side whose calls are lost, and the drop reason of each. */
export const kernelDrops: readonly (readonly [counter: CaptureCounter, reason: DropReasonName])[] = [
  ['red_full', 'red_full'],
  ['abandoned', 'framing_lost'],
  ['pipeline_full', 'no_memory'],
]
