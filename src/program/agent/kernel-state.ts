import type { Degradation, StatusDocument } from '../../view/api/types.ts'
import type { SubsystemState } from './subsystem.ts'

type Part = StatusDocument['ebpf']['parts'][number]

/** State of each eBPF part. One that is degraded counts as on. */
export function kernelState(states: readonly SubsystemState[]): readonly Part[] {
  return states.flatMap(({ subsystem: { needs }, state: { state, detail = '', faults = [] } }): Part[] => {
    if (needs === undefined) return []
    const { subsystem } = needs
    if (state === 'failed') return [{ subsystem, state, reason: faults[0]?.reason ?? '' }]
    return [state === 'off' ? { subsystem, state, reason: detail } : { subsystem, state: 'on', reason: '' }]
  })
}

/** Faults as one text, with each distinct reason once. */
export function failureText(failed: readonly Degradation[]): string {
  const byReason = new Map<string, string[]>()
  for (const { subsystem, reason } of failed)
    byReason.set(reason, [...(byReason.get(reason) ?? []), subsystem])
  return [...byReason].map(([reason, subsystems]) => `${subsystems.join(', ')}: ${reason}`).join('; ')
}
