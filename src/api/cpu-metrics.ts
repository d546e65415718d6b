import type { Registry } from '../lib/registry.ts'

export interface CpuStats {
  readonly limit_cores: number
  readonly used_cores: number
  readonly changes: number
  readonly lowered: readonly { readonly name: string; readonly steps: number }[]
}

export function cpuMetrics(registry: Registry, named: (name: string) => string, cpu: () => CpuStats): void {
  registry.collector(
    named('process_cpu_seconds_total'),
    'CPU time used, in user and kernel mode.',
    'counter',
    [],
    emit => {
      const { user, system } = process.cpuUsage()
      emit((user + system) / 1e6)
    },
  )
  registry.collector(
    named('cpu_limit_cores'),
    'CPU limit of the agent in cores: limits.cpu.',
    'gauge',
    [],
    emit => emit(cpu().limit_cores),
  )
  registry.collector(
    named('cpu_used_cores'),
    'CPU usage of the agent and the programs that it started, over the last ten seconds, in cores.',
    'gauge',
    [],
    emit => emit(cpu().used_cores),
  )
  registry.collector(
    named('cpu_lowered_steps'),
    'Steps by which a part is reduced now, because svc used more CPU than its limit.',
    'gauge',
    ['part'],
    emit => {
      for (const { name, steps } of cpu().lowered) emit(steps, name)
    },
  )
  registry.collector(
    named('cpu_lowered_total'),
    'Reductions because svc used more CPU than its limit.',
    'counter',
    [],
    emit => emit(cpu().changes),
  )
}
