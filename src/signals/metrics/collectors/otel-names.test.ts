import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { treeOf } from '../../../../test/helpers/collector.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import type { Family, OtelName, Readings } from '../../../foundation/model/collector.ts'
import type { Keys } from '../../../foundation/schema/tree.ts'
import { HostFiles } from '../../../kernel/host.ts'
import type { Collector } from './collector.ts'
import { collectors, extraCollectors } from './index.ts'

/** A metric of the semantic conventions. */
interface Convention {
  readonly instrument: string
  readonly unit: string
  readonly attributes: ReadonlySet<string>
  /** Attributes that a point must have. */
  readonly required: readonly string[]
}

const [metricLines, attributeLines] = readFileSync(
  join(import.meta.dirname, '../../../../test/fixtures/otel/host-metrics.txt'),
  'utf8',
)
  .replaceAll(/^#.*\n/gm, '')
  .trim()
  .split('\n\n')
  .map(part => part.split('\n')) as [string[], string[]]

/** The conventions' registry, as far as it is about hosts and what runs on them. */
const conventions: ReadonlyMap<string, Convention> = new Map(
  metricLines.map(line => {
    const [name, instrument, unit, ...attributes] = line.split(' ') as [string, string, string, ...string[]]
    const required = attributes.filter(each => each.endsWith('!')).map(each => each.slice(0, -1))
    return [
      name,
      { instrument, unit, required, attributes: new Set(attributes.map(each => each.replace('!', ''))) },
    ]
  }),
)

/** Attributes that have one of few values. What is true of some hosts and not among them is told by its own word. */
const values: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  attributeLines
    .filter(line => line.includes(': '))
    .map(line => line.split(': ') as [string, string])
    .map(([name, words]) => [name, new Set(words.split(' '))]),
)
/** Any text stands for these, as the registry says itself (of a battery's `hw.state` in the note of its metric). */
const open = new Set(['error.type', 'hw.state charging', 'hw.state discharging'])

/** Metrics of the registry that no family of the page is, by the reason. Patterns end in `*`. */
const notMade: Readonly<Record<string, string>> = {
  'it follows from others, and the page has what was counted': [
    'system.cpu.utilization system.memory.utilization system.memory.linux.hugepages.utilization',
    'system.paging.utilization system.filesystem.utilization hw.fan.speed_ratio hw.network.bandwidth.utilization',
    'hw.logical_disk.utilization hw.power_supply.utilization hw.gpu.memory.utilization',
  ].join(' '),
  'the page has when the host began (node_boot_time_seconds), not for how long it has run': 'system.uptime',
  'the page has a series for each CPU, not their number':
    'system.cpu.logical.count system.cpu.physical.count',
  'the replaced exporter does not read /proc/locks': 'system.filesystem.lock.count',
  'it is of one process: the page has open files by name of the program, of many processes at once':
    'process.*',
  'it is of one container: the page has control groups, of which most are services': 'container.*',
  'the kubelet tells it of the node; the page has the host, as system.*': 'k8s.node.*',
  'the kernel does not say of what component it is: a chip or a supply of power has a name and no kind': [
    'hw.power hw.power_supply.limit hw.power_supply.usage',
  ].join(' '),
  'the kernel has no sensor of the whole host': 'hw.host.*',
  'the kernel has no nominal voltage of a sensor': 'hw.voltage.nominal',
  'the kernel does not tell modules of memory': 'hw.memory.size',
  'the replaced exporter asks no disk for SMART, size or wear, which takes commands to it':
    'hw.physical_disk.*',
  'the replaced exporter counts blocks of tapes, and no mounts': 'hw.tape_drive.operations',
  'NVML has it, and the page of the host does not ask it (docs/gpu.md)': 'hw.gpu.io',
}

/** One name instead of the other is shown, as an option says. */
const alternatives: Readonly<Record<string, string>> = {
  network_receive_errors_total: 'network_receive_errs_total',
  network_receive_dropped_total: 'network_receive_drop_total',
  network_transmit_errors_total: 'network_transmit_errs_total',
  network_transmit_dropped_total: 'network_transmit_drop_total',
  network_receive_fifo_errors_total: 'network_receive_fifo_total',
  network_receive_frame_errors_total: 'network_receive_frame_total',
  network_transmit_fifo_errors_total: 'network_transmit_fifo_total',
  network_transmit_carrier_errors_total: 'network_transmit_carrier_total',
}

type Mapped = Family & { readonly otel: OtelName }

const units: readonly Collector<Keys>[] = [...collectors, ...extraCollectors] as never

/** What the collectors below read, with everything that has a name there. */
const files: Readonly<Record<string, string>> = {
  'proc/vmstat': 'pgmajfault 1\npswpin 1\npswpout 1\n',
  'proc/meminfo': [
    ...['MemTotal', 'MemFree', 'MemAvailable', 'Buffers', 'Cached', 'Shmem', 'SReclaimable', 'SUnreclaim']
      .concat('SwapFree', 'Hugepagesize')
      .map(field => `${field}: 1 kB\n`),
    ...['Total', 'Free', 'Rsvd', 'Surp'].map(field => `HugePages_${field}: 1\n`),
  ].join(''),
  'sys/class/powercap/intel-rapl:0/name': 'package-0\n',
  'sys/class/powercap/intel-rapl:0/energy_uj': '1\n',
  'sys/class/powercap/intel-rapl:0:0/name': 'dram\n',
  'sys/class/powercap/intel-rapl:0:0/energy_uj': '1\n',
  'sys/class/hwmon/hwmon0/name': 'chip\n',
  ...Object.fromEntries(
    ['temp1_input temp1_lcrit temp1_min temp1_max temp1_crit', 'fan1_input fan1_min fan1_max']
      .concat('in1_input in1_lcrit in1_min in1_max in1_crit', 'temp1_fault fan1_fault')
      .flatMap(names => names.split(' '))
      .map(name => [`sys/class/hwmon/hwmon0/${name}`, '1\n']),
  ),
}

/** Declared families, and those that a collector makes of what it reads. */
function familiesOf(unit: Collector<Keys>, root: string): ReadonlySet<Family> {
  const found = new Set(unit.metrics)
  if (!dynamic.has(unit.name)) return found
  const at = (name: string) => join(root, name)
  const host = new HostFiles({ procfs: at('proc'), sysfs: at('sys'), rootfs: at('rootfs'), udev: at('udev') })
  const options = Object.entries(unit.options ?? {}).map(([name, leaf]) => [
    name,
    'default' in leaf ? leaf.default : undefined,
  ])
  const reader = unit.start(Object.fromEntries(options) as never, { host, log: silentLogger })
  const note = (family: Family) => void found.add(family)
  const readings: Readings = { set: note, setAll: note, setDistribution: note }
  try {
    reader.collect(readings)
  } finally {
    reader.close?.()
    host.close()
  }
  return found
}

/** Collectors whose families with a name of the conventions are made of what they read. */
const dynamic: ReadonlySet<string> = new Set(['hwmon', 'meminfo', 'rapl', 'vmstat'])

function mappedFamilies(t: TestContext): readonly Mapped[] {
  const root = treeOf(t, files)
  return units.flatMap(unit =>
    [...familiesOf(unit, root)].filter((family): family is Mapped => family.otel !== undefined),
  )
}

test('metrics with a name of the semantic conventions have their unit and instrument too', t => {
  for (const { name, otel } of mappedFamilies(t)) {
    const convention = conventions.get(otel.name)
    assert.ok(convention, `${name} is ${otel.name}, which the registry does not have`)
    assert.equal(`${otel.kind} ${otel.unit}`, `${convention.instrument} ${convention.unit}`, name)
  }
})

test('each metric that the conventions have about hosts is made, or it is said why not', t => {
  const made = new Set(mappedFamilies(t).map(({ otel }) => otel.name))
  const named = Object.values(notMade).flatMap(names => names.split(' '))
  const isNamed = (metric: string) =>
    named.some(name => (name.endsWith('*') ? metric.startsWith(name.slice(0, -1)) : metric === name))
  for (const metric of conventions.keys())
    assert.equal(
      isNamed(metric),
      !made.has(metric),
      `${metric} is made, or stands in notMade with the reason`,
    )
  for (const name of named)
    assert.ok(
      [...conventions.keys()].some(metric => metric.startsWith(name.replace('*', ''))),
      `${name} is none of the registry`,
    )
})

test('what falls is no counter over OTLP, and what only grows is one', t => {
  for (const { name, type, otel } of mappedFamilies(t)) {
    if (type === 'counter') assert.equal(otel.kind, 'counter', name)
    else if (type === 'gauge') assert.notEqual(otel.kind, 'counter', name)
    else assert.equal(type, 'untyped', `${name} is one number`)
    assert.ok(otel.scale === undefined || otel.scale > 0, name)
  }
})

test('attributes are those of the metric in the conventions, each from a label that the family has', t => {
  for (const { name, labels, otel } of mappedFamilies(t)) {
    const renamed = Object.entries(otel.attributes ?? {})
    for (const label of [...renamed.map(([label]) => label), ...(otel.id ?? [])])
      assert.ok(labels.includes(label), `${name} has no label ${label}`)
    const made = [...renamed.map(([, attribute]) => attribute), ...Object.keys(otel.constant ?? {})]
    if (otel.id) made.push('hw.id')
    assert.equal(new Set(made).size, made.length, `${name} makes an attribute twice`)
    const { attributes, required } = conventions.get(otel.name)!
    for (const attribute of made)
      assert.ok(attributes.has(attribute) || attribute === 'cpu.logical_number', `${name}: ${attribute}`)
    for (const attribute of required) assert.ok(made.includes(attribute), `${name} lacks ${attribute}`)
    for (const [attribute, value] of Object.entries(otel.constant ?? {}))
      assert.ok(
        open.has(attribute) ||
          open.has(`${attribute} ${value}`) ||
          (values.get(attribute)?.has(value) ?? isText(attribute)),
        `${name}: ${attribute}=${value}`,
      )
    if (otel.values) assert.ok(renamed.length > 0, `${name} has values for no attribute`)
  }
})

/** Attributes without a list of values, which families set to a word of ours. */
function isText(attribute: string): boolean {
  return attribute === 'hw.sensor_location' || attribute === 'nfs.server.repcache.status'
}

test('no two families make the same series of one metric', t => {
  const taken = new Map<string, string>()
  for (const { name, labels, otel } of mappedFamilies(t)) {
    const own = alternatives[name] ?? name
    const keys = labels.map(label => otel.attributes?.[label] ?? label)
    const constants = Object.entries(otel.constant ?? {}).map(pair => pair.join('='))
    const series = [otel.name, ...[...keys, ...constants].sort()].join(' ')
    assert.equal(taken.get(series) ?? own, own, `${series} is made twice`)
    taken.set(series, own)
  }
})
