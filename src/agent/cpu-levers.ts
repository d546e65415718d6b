// What does less while svc takes more CPU than it may. Request metrics, host metrics and probes are left alone.

import type { CpuGovernor, CpuLever } from '../lib/cpu-governor.ts'
import type { KernelTelemetry } from './kernel-telemetry.ts'
import type { Logs } from './logs.ts'
import type { Profiling } from './profiling.ts'
import type { Tracing } from './tracing.ts'

export interface LoweredParts {
  /** Undefined: it does not run. */
  readonly tracing: Tracing | undefined
  readonly kernel: KernelTelemetry | undefined
  readonly profiling: Profiling
  readonly logs: Logs
}

export function leverParts(governor: CpuGovernor, { tracing, kernel, profiling, logs }: LoweredParts): void {
  const levers: Readonly<Record<string, CpuLever | undefined>> = {
    spans: tracing?.budget,
    tls: tracing?.tls?.lever,
    process_events: kernel?.lever,
    profiles: profiling.lever,
    logs: logs.lever,
  }
  for (const [name, lever] of Object.entries(levers)) if (lever !== undefined) governor.register(name, lever)
}
