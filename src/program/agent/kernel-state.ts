import type { Degradation, StatusDocument } from '../../view/api/types.ts'
import type { SubsystemState } from './subsystem.ts'

type Part = StatusDocument['ebpf']['parts'][number]

/** How each part of what svc does with eBPF is. One that runs with less than asked is on. */
export function kernelState(states: readonly SubsystemState[]): readonly Part[] {
  return states.flatMap(({ subsystem: { needs }, state: { state, detail = '', faults = [] } }): Part[] => {
    if (needs === undefined) return []
    const { subsystem } = needs
    if (state === 'failed') return [{ subsystem, state, reason: faults[0]?.reason ?? '' }]
    return [state === 'off' ? { subsystem, state, reason: detail } : { subsystem, state: 'on', reason: '' }]
  })
}

/** Faults in one text: a reason that several have is there once. */
export function failureText(failed: readonly Degradation[]): string {
  const byReason = new Map<string, string[]>()
  for (const { subsystem, reason } of failed)
    byReason.set(reason, [...(byReason.get(reason) ?? []), subsystem])
  return [...byReason].map(([reason, subsystems]) => `${subsystems.join(', ')}: ${reason}`).join('; ')
}
