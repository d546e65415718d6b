import { HostMetrics } from '../agent/host-metrics.ts'
import { hostCounts as part, whyOff } from '../agent/kernel-parts.ts'
import { off } from '../agent/off.ts'
import { fact, type Subsystem } from '../agent/subsystem.ts'
import { discovery } from './discovery.ts'
import { exporting } from './exporting.ts'

export const hostMetrics: Subsystem<HostMetrics | undefined> = {
  name: 'host metrics',
  // Whether they are exported depends on the destination of metrics.
  keys: ['agent.nodeexporter', 'self_telemetry.allowed_hosts', 'otlp', 'pipeline.export', 'resource'],
  banner: 'always',
  source: { id: 'host-metrics', name: 'host metrics', signal: 'metrics', hidden: ['ok'] },
  create: agent => {
    const { loaded, log } = agent.options
    return HostMetrics.start({
      loaded,
      pipeline: agent.of(exporting).pipeline,
      host: agent.of(discovery).host,
      log,
    })
  },
  stop: own => own?.close(),
  prepare: (own, config, changed) => own?.prepare(config, changed),
  checks: own => {
    if (own === undefined) return {}
    const url = own.server?.url('/metrics')
    return {
      collectors: { ok: `${own.collectors} running` },
      ...(url !== undefined && { 'metrics address': { ok: `${url} is this running agent` } }),
    }
  },
  state: own => {
    if (own === undefined) return off('agent.nodeexporter.enabled')
    const { server, collectors, faults } = own
    const url = server?.url('/metrics')
    return {
      state: 'ok',
      detail: `${collectors} collectors${url === undefined ? '' : `, at ${url}`}`,
      faults,
      measures: () => [
        fact('host collectors', collectors),
        ...(url === undefined ? [] : [fact('also served at', url)]),
      ],
    }
  },
}

/** Counts that need eBPF. */
export const hostCounts: Subsystem<HostMetrics | undefined> = {
  name: part.subsystem,
  source: { id: 'host-counts', name: part.subsystem, signal: 'metrics', hidden: ['ok', 'off'] },
  needs: part,
  create: agent => agent.of(hostMetrics),
  state: (own, config) => {
    const failures = own?.failures ?? []
    if (failures.length === 0) return whyOff(part, config) ?? { state: 'ok' }
    return { state: 'failed', faults: failures.map(fault => ({ ...fault, fails: 'ebpf' })) }
  },
}
