import type { Degradation, StatusDocument } from '../api/types.ts'
import { kernelParts, traces, whyOff } from './kernel-parts.ts'
import type { Parts } from './parts.ts'
import { Tracing } from './tracing.ts'

type State = StatusDocument['ebpf']['parts'][number]

/** What became of each part of what svc does with eBPF. One that runs with less than asked is on. */
export function kernelState(parts: KernelOwners): readonly State[] {
  const { config } = parts.loaded()
  const failed = failedParts(parts)
  return kernelParts.map(part => {
    const { subsystem } = part
    const why = whyOff(part, config)
    if (why !== undefined) return { subsystem, state: 'off', reason: why }
    const failure = failed.find(each => each.subsystem === subsystem)
    return failure === undefined
      ? { subsystem, state: 'on', reason: '' }
      : { subsystem, state: 'failed', reason: failure.reason }
  })
}

type KernelOwners = Pick<Parts, 'loaded' | 'tracing' | 'kernel' | 'profiling' | 'hostMetrics'>

/** Parts that were asked for and do not run at all, with the hints. */
export function failedParts({ tracing, kernel, profiling, hostMetrics }: KernelOwners): Degradation[] {
  return [
    ...(tracing === undefined || tracing instanceof Tracing
      ? []
      : [{ subsystem: traces.subsystem, reason: tracing.reason, hint: tracing.hint }]),
    ...(kernel?.faults ?? []),
    ...profiling.failures,
    ...(hostMetrics()?.failures ?? []),
  ]
}

/** The same in one text: a reason that several have stands once. */
export function failureText(failed: readonly Degradation[]): string {
  const byReason = new Map<string, string[]>()
  for (const { subsystem, reason } of failed)
    byReason.set(reason, [...(byReason.get(reason) ?? []), subsystem])
  return [...byReason].map(([reason, subsystems]) => `${subsystems.join(', ')}: ${reason}`).join('; ')
}
