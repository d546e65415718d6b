// Whether the books of a page of metrics are right.
import assert from 'node:assert/strict'
import { signals } from '../../src/foundation/model/signal.ts'
import type { Exposition } from './exposition.ts'

/** How the metrics call the items of each signal. */
export const itemNames = { traces: 'spans', metrics: 'metrics', logs: 'logs', profiles: 'profiles' } as const

/** Every item of every signal is in exactly one place, and nothing is negative. */
export function checkBooks(page: Exposition): void {
  for (const signal of signals) {
    const items = itemNames[signal]
    const collected = page.sum(`svc_${items}_collected_total`)
    const exported = page.sum(`svc_${items}_exported_total`)
    const dropped = page.sum(`svc_${items}_dropped_total`)
    const queued = page.sum('svc_export_queue_size', { signal_type: signal })
    assert.equal(
      collected,
      exported + dropped + queued,
      `${items}: exported ${exported}, dropped ${dropped}, queued ${queued}`,
    )
  }
  for (const { samples } of page.families.values())
    for (const { key, value } of samples) assert.ok(value >= 0, `${key} is ${value}`)
}
