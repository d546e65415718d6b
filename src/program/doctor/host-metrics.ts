import { createLogger } from '../../foundation/lib/logger.ts'
import { findAsset } from '../../kernel/assets.ts'
import { systemMetrics } from '../agent/host-metrics.ts'
import { check } from './check.ts'
import { tryListen } from './listening.ts'

const served = 'host metrics for scrapers; they are still sent over OTLP'

export const metricsAddress = check({
  name: 'metrics address',
  group: 'host',
  summary: 'The endpoint of host metrics can listen on its address; a socket is bound there briefly',
  impact: served,
  faults: {
    taken: {
      state: 'limited',
      what: 'another process is listening there, perhaps the exporter that svc replaces; a running svc is not a problem',
      hints: {
        any: 'systemctl disable --now prometheus-node-exporter, or stop the process that uses the port: ss -ltnp',
        config: 'agent.nodeexporter.listen_address: :9101',
      },
    },
    privileged: {
      state: 'missing',
      what: 'ports below 1024 need root',
      hints: { config: 'agent.nodeexporter.listen_address: :9100' },
    },
    foreign: {
      state: 'missing',
      what: 'the address does not belong to this host (in a container: to the container)',
      hints: {
        config: 'agent.nodeexporter.listen_address: :9100',
        container: 'docker run --network=host',
        kubernetes: 'hostNetwork: true',
      },
    },
    unusable: {
      state: 'missing',
      what: 'the host name does not resolve, or listening fails for another reason',
      hints: { config: 'agent.nodeexporter.listen_address: :9100 (an address instead of a name)' },
    },
  },
  try: async ({ loaded }) => {
    const { enabled, listen_address } = loaded.config.agent.nodeexporter
    // Without the right to see the socket's owner, svc cannot be told from others; then it is not reported as their
    // fault.
    return enabled ? [await tryListen(listen_address, async () => false)] : []
  },
})

export const remoteMounts = check({
  name: 'remote mounts',
  group: 'host',
  summary:
    'svc-probe, the program that reads network and FUSE mounts, is installed; svc itself never accesses them',
  impact: 'disk space of network and FUSE mounts, and text files there',
  faults: {
    absent: {
      state: 'limited',
      what: 'svc-probe is not where the package installs it',
      hints: { package: 'reinstall the svc package; in a source tree: bash tools/setup' },
    },
  },
  try: () => {
    const path = findAsset('svc-probe')
    return [path === undefined ? { fault: 'absent', detail: 'svc-probe not found' } : { ok: path }]
  },
})

export const collectors = check({
  name: 'collectors',
  group: 'host',
  summary: 'Each enabled collector can read its data; a collector without data is not a problem',
  impact: 'the metrics of that collector',
  faults: {
    failed: {
      state: 'limited',
      what: 'the source of a collector exists but cannot be read, or has an unexpected format',
      hints: {
        any: 'fix the reported problem; node_scrape_collector_reason_info shows it at every scrape',
        config: 'agent.nodeexporter.collectors.NAME: false',
      },
    },
  },
  try: async ({ loaded, timeoutMs }) => {
    const { config } = loaded
    if (!config.agent.nodeexporter.enabled) return []
    const log = createLogger({ level: 'error', format: 'json', write: () => undefined })
    const metrics = systemMetrics(config, log, () => ({ answered: {}, inFlight: 0 }))
    try {
      await metrics.gather(metrics.runs, timeoutMs)
      const failed = metrics.runs.filter(({ outcome }) => outcome === 'failed' || outcome === 'late')
      const reading = metrics.runs.filter(({ outcome }) => outcome === 'success').length
      const others = metrics.runs.length - reading - failed.length
      return [
        { ok: `${reading} have data, ${others} have none on this host` },
        ...failed.map(({ name, reason }) => ({ fault: 'failed', detail: `${name}: ${reason}` }) as const),
      ]
    } finally {
      metrics.close()
    }
  },
})
