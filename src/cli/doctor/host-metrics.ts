import { systemMetrics } from '../../agent/host-metrics.ts'
import { findAsset } from '../../kernel/assets.ts'
import { createLogger } from '../../lib/logger.ts'
import { check } from './check.ts'
import { tryListen } from './listening.ts'

const served = 'metrics of this host for scrapers; over OTLP they are sent all the same'

export const metricsAddress = check({
  name: 'metrics address',
  group: 'host',
  summary: 'The endpoint of host metrics can listen where it should; a socket is bound there for a moment',
  lose: served,
  faults: {
    taken: {
      state: 'limited',
      what: 'another process listens there, perhaps the exporter that svc replaces; a running svc is no fault',
      hints: {
        any: 'systemctl disable --now prometheus-node-exporter, or whatever holds the port: ss -ltnp',
        config: 'agent.nodeexporter.listen_address: :9101',
      },
    },
    privileged: {
      state: 'missing',
      what: 'ports below 1024 are for root',
      hints: { config: 'agent.nodeexporter.listen_address: :9100' },
    },
    foreign: {
      state: 'missing',
      what: 'the address is none of this host’s (in a container: none of the container’s)',
      hints: {
        config: 'agent.nodeexporter.listen_address: :9100',
        container: 'docker run --network=host',
        kubernetes: 'hostNetwork: true',
      },
    },
    unusable: {
      state: 'missing',
      what: 'the host name has no address, or the system refuses to listen for another reason',
      hints: { config: 'agent.nodeexporter.listen_address: :9100, an address instead of a name' },
    },
  },
  try: async ({ loaded }) => {
    const { enabled, listen_address } = loaded.config.agent.nodeexporter
    // Who may not see the holder cannot tell svc from others; then it is not said to be a fault of theirs.
    return enabled ? [await tryListen(listen_address, async () => false)] : []
  },
})

export const farMounts = check({
  name: 'far mounts',
  group: 'host',
  summary:
    'The program that asks network and FUSE mounts, svc-probe, is there, as svc itself never touches them',
  lose: 'space on network and FUSE mounts, and text files that lie there',
  faults: {
    absent: {
      state: 'limited',
      what: 'svc-probe is not where the package has it',
      hints: { package: 'install the package of svc anew; in a source tree: bash tools/setup' },
    },
  },
  try: () => {
    const path = findAsset('svc-probe')
    return [path === undefined ? { fault: 'absent', detail: 'there is no svc-probe' } : { ok: path }]
  },
})

export const collectors = check({
  name: 'collectors',
  group: 'host',
  summary: 'Each collector that is on reads what it is for; one that finds nothing of its kind is no fault',
  lose: 'the metrics of that collector',
  faults: {
    failed: {
      state: 'limited',
      what: 'what a collector reads is there and cannot be read, or is not what the kernel writes',
      hints: {
        any: 'fix what the reason says; node_scrape_collector_reason_info has it at every scrape',
        config: 'agent.nodeexporter.collectors.NAME: false',
      },
    },
  },
  try: async ({ loaded, timeoutMs }) => {
    const { config } = loaded
    if (!config.agent.nodeexporter.enabled) return []
    const log = createLogger({ level: 'error', format: 'json', write: () => undefined })
    const metrics = systemMetrics(config, log, () => ({ answered: {}, underWay: 0 }))
    try {
      await metrics.gather(metrics.runs, timeoutMs)
      const failed = metrics.runs.filter(({ outcome }) => outcome === 'failed' || outcome === 'late')
      const reading = metrics.runs.filter(({ outcome }) => outcome === 'success').length
      const others = metrics.runs.length - reading - failed.length
      return [
        { ok: `${reading} have readings, ${others} find nothing of their kind on this host` },
        ...failed.map(({ name, reason }) => ({ fault: 'failed', detail: `${name}: ${reason}` }) as const),
      ]
    } finally {
      metrics.close()
    }
  },
})
