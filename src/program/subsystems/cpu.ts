import { Cpu } from '../agent/cpu.ts'
import { value, values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'

const hint = 'raise limits.cpu, or disable unneeded features; svc status shows the reduced parts'

/** Subsystems register what they can reduce. Request metrics, host metrics and probes are never reduced. */
export const cpu: Subsystem<Cpu> = {
  name: 'cpu',
  create: ({ config, options: { log } }) => new Cpu(config.limits.cpu, log),
  start: own => own.started(),
  stop: own => own.stop(),
  state: ({ shortage: reason }) => ({
    state: 'ok',
    faults: reason === undefined ? [] : [{ subsystem: 'cpu', reason, hint }],
  }),
  metrics: {
    process_cpu_seconds_total: value('CPU time used, in user and kernel mode.', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
    cpu_limit_cores: value('CPU limit of the agent in cores: limits.cpu.', ({ state }) => state.limit_cores),
    cpu_used_cores: value(
      'CPU usage of the agent and the programs that it started, over the last ten seconds, in cores.',
      ({ state }) => state.used_cores,
    ),
    cpu_lowered_steps: values(
      'part',
      'Steps by which a part is reduced now, because svc used more CPU than its limit.',
      ({ state }) => state.reduced.map(({ name, steps }) => [name, steps] as const),
    ),
    cpu_lowered_total: value(
      'Reductions because svc used more CPU than its limit.',
      ({ state }) => state.reductions,
    ),
  },
}
