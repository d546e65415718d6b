// The whole page over the project's own host tree, as `svc node-exporter` serves it. What it should be is reasoned in the
// tests of the collectors; this holds that a change anywhere shows in what users read. UPDATE_GOLDEN=1 writes it anew.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isBranch, type Keys } from '../src/foundation/schema/tree.ts'
import { SystemMetrics } from '../src/program/agent/system-metrics.ts'
import type { Collector } from '../src/signals/metrics/collectors/collector.ts'
import { collectors } from '../src/signals/metrics/collectors/index.ts'
import { hostTree } from './helpers/collector.ts'
import { parseExposition } from './helpers/exposition.ts'
import { silentLogger } from './helpers/silent-logger.ts'

const golden = join(import.meta.dirname, 'golden/system-metrics.txt')

/** What asks this machine rather than a tree of files. */
const live =
  /^(ethtool|filesystem|logind|network_route|ntp|perf|runit|supervisord|systemd|tcpstat|textfile|time|timex|uname)$/

/** So that more of what collectors can do is seen. */
const options: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  arp: { netlink: false },
  bcache: { priorityStats: true },
  cpu: { info: true },
  netdev: { netlink: false },
  qdisc: { fixtures: join(hostTree, 'qdisc') },
  stat: { softirq: true },
  sysctl: { include: ['kernel.threads-max'] },
  wifi: { fixtures: join(hostTree, 'wifi') },
}

const units: readonly Collector<Keys>[] = collectors

test('the page over the fixture tree is the one that is known', async () => {
  const metrics = new SystemMetrics({
    namespace: 'node',
    path: {
      procfs: join(hostTree, 'proc'),
      sysfs: join(hostTree, 'sys'),
      rootfs: join(hostTree, 'rootfs'),
      udev: join(hostTree, 'udev'),
    },
    collectors: units
      .filter(({ name }) => !live.test(name))
      .map(unit => {
        const defaults = Object.entries(unit.options ?? {}).map(([name, key]) => [
          name,
          isBranch(key) ? undefined : key.default,
        ])
        return { unit, options: { ...Object.fromEntries(defaults), ...options[unit.name] } }
      }),
    cardinality: {
      enabled: false,
      max_metrics: 0,
      include_metrics: [],
      exclude_metrics: [],
      drop_labels: [],
    },
    maxProcs: 1,
    extended: false,
    intervalMs: 0,
    timeoutMs: 10_000,
    build: { version: '0', revision: '0' },
    log: silentLogger,
  })
  try {
    const scrape = () => metrics.scrape({ collectors: metrics.enabled, openMetrics: false, withinMs: 10_000 })
    const text = await scrape()
    // A second reading of the same files changes nothing.
    const stable = (page: string) =>
      page
        .replaceAll(hostTree, '')
        .replace(/^(node_scrape_collector_duration_seconds\{.*\}|node_exporter_build_info\{).*/gm, '$1')
    assert.equal(stable(await scrape()), stable(text))
    const { families } = parseExposition(text, 'text')
    const failed = families
      .get('node_scrape_collector_success')!
      .samples.filter(({ value }) => value === 0)
      .map(({ labels }) => labels.collector)
    assert.deepEqual(failed, [], 'collectors without input')
    assert.ok(families.size > 650, `${families.size} families`)
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(golden, stable(text))
    assert.equal(stable(text), readFileSync(golden, 'utf8'))
  } finally {
    metrics.close()
  }
})
