// What does less while svc takes more CPU than it may. Request metrics, host metrics, logs and probes are left alone.

import type { CpuGovernor } from '../lib/cpu-governor.ts'
import type { Profiling } from './profiling.ts'
import type { Tracing } from './tracing.ts'

export interface LoweredParts {
  /** Undefined: it does not run. */
  readonly tracing: Tracing | undefined
  readonly profiling: Profiling
}

export function leverParts(governor: CpuGovernor, { tracing, profiling }: LoweredParts): void {
  if (tracing !== undefined)
    governor.register({
      name: 'spans',
      costMs: () => tracing.capture.busyMs,
      lower: () => tracing.budget.lower(),
      raise: () => tracing.budget.raise(),
      get effect() {
        const { lowered } = tracing.budget
        return lowered === undefined ? '' : `at most ${lowered} spans a second, while metrics count all calls`
      },
    })
  governor.register({
    name: 'profiles',
    costMs: () => profiling.cpuMs,
    lower: () => profiling.lower(),
    raise: () => profiling.raise(),
    get effect() {
      return profiling.lowered
    },
  })
}
