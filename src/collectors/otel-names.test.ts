import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { treeOf } from '../../test/helpers/collector.ts'
import { silentLogger } from '../../test/helpers/silent-logger.ts'
import { HostFiles } from '../kernel/host.ts'
import type { Family, OtelName, Readings } from '../model/collector.ts'
import type { Keys } from '../schema/tree.ts'
import type { Collector } from './collector.ts'
import { beyond, collectors } from './index.ts'

/** Metrics of the semantic conventions 1.44.0 that are made here: kind and unit. */
const conventions: Readonly<Record<string, string>> = {
  'hw.battery.charge': 'gauge 1',
  'hw.battery.time_left': 'gauge s',
  'hw.energy': 'counter J',
  'hw.errors': 'counter {error}',
  'hw.fan.speed': 'gauge rpm',
  'hw.fan.speed.limit': 'gauge rpm',
  'hw.gpu.memory.limit': 'updowncounter By',
  'hw.gpu.memory.usage': 'updowncounter By',
  'hw.gpu.utilization': 'gauge 1',
  'hw.network.io': 'counter By',
  'hw.network.packets': 'counter {packet}',
  'hw.network.up': 'updowncounter 1',
  'hw.temperature': 'gauge Cel',
  'hw.temperature.limit': 'gauge Cel',
  'hw.voltage': 'gauge V',
  'hw.voltage.limit': 'gauge V',
  'nfs.client.net.count': 'counter {record}',
  'nfs.client.net.tcp.connection.accepted': 'counter {connection}',
  'nfs.client.operation.count': 'counter {operation}',
  'nfs.client.procedure.count': 'counter {procedure}',
  'nfs.client.rpc.authrefresh.count': 'counter {authrefresh}',
  'nfs.client.rpc.count': 'counter {request}',
  'nfs.client.rpc.retransmit.count': 'counter {retransmit}',
  'nfs.server.fh.stale.count': 'counter {fh}',
  'nfs.server.net.count': 'counter {record}',
  'nfs.server.net.tcp.connection.accepted': 'counter {connection}',
  'nfs.server.operation.count': 'counter {operation}',
  'nfs.server.procedure.count': 'counter {procedure}',
  'nfs.server.repcache.requests': 'counter {request}',
  'nfs.server.rpc.count': 'counter {request}',
  'nfs.server.thread.count': 'updowncounter {thread}',
  'system.cpu.frequency': 'gauge Hz',
  'system.cpu.time': 'counter s',
  'system.disk.io': 'counter By',
  'system.disk.io_time': 'counter s',
  'system.disk.merged': 'counter {operation}',
  'system.disk.operation_time': 'counter s',
  'system.disk.operations': 'counter {operation}',
  'system.filesystem.limit': 'updowncounter By',
  'system.filesystem.usage': 'updowncounter By',
  'system.memory.limit': 'updowncounter By',
  'system.memory.linux.available': 'updowncounter By',
  'system.memory.linux.hugepages.limit': 'updowncounter {page}',
  'system.memory.linux.hugepages.page_size': 'updowncounter By',
  'system.memory.linux.hugepages.reserved': 'updowncounter {page}',
  'system.memory.linux.hugepages.surplus': 'updowncounter {page}',
  'system.memory.linux.hugepages.usage': 'updowncounter {page}',
  'system.memory.linux.shared': 'updowncounter By',
  'system.memory.linux.slab.usage': 'updowncounter By',
  'system.memory.usage': 'updowncounter By',
  'system.network.connection.count': 'updowncounter {connection}',
  'system.network.errors': 'counter {error}',
  'system.network.io': 'counter By',
  'system.network.packet.count': 'counter {packet}',
  'system.network.packet.dropped': 'counter {packet}',
  'system.paging.faults': 'counter {fault}',
  'system.paging.operations': 'counter {operation}',
  'system.paging.usage': 'updowncounter By',
  'system.process.count': 'updowncounter {process}',
  'system.process.created': 'counter {process}',
  'system.process.limit': 'updowncounter {thread}',
}

/** Attributes of those metrics; labels that have none keep their names. */
const attributes = new Set(
  [
    'cpu.logical_number cpu.mode disk.io.direction error.type hw.battery.state hw.gpu.task hw.id hw.limit_type hw.name',
    'hw.parent hw.type network.connection.state network.interface.name network.io.direction network.transport',
    'nfs.operation.name nfs.server.repcache.status onc_rpc.procedure.name onc_rpc.version process.state system.device',
    'system.filesystem.mountpoint system.filesystem.state system.filesystem.type system.memory.linux.hugepages.state',
    'system.memory.linux.slab.state system.memory.state system.paging.direction system.paging.fault.type',
    'system.paging.state',
  ].flatMap(line => line.split(' ')),
)

/** One name instead of the other is shown, as an option says. */
const alternatives: Readonly<Record<string, string>> = {
  network_receive_errors_total: 'network_receive_errs_total',
  network_receive_dropped_total: 'network_receive_drop_total',
  network_transmit_errors_total: 'network_transmit_errs_total',
  network_transmit_dropped_total: 'network_transmit_drop_total',
}

type Mapped = Family & { readonly otel: OtelName }

const units: readonly Collector<Keys>[] = [...collectors, ...beyond] as never

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
      .concat('in1_input in1_lcrit in1_min in1_max in1_crit')
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

test('metrics with a name of the semantic conventions have their unit and kind too', t => {
  const mapped = mappedFamilies(t)
  for (const { name, otel } of mapped)
    assert.equal(`${otel.kind} ${otel.unit}`, conventions[otel.name], `${name} is ${otel.name}`)
  const made = new Set(mapped.map(({ otel }) => otel.name))
  assert.deepEqual(
    Object.keys(conventions).filter(name => !made.has(name)),
    [],
    'nothing is listed that no collector makes',
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

test('attributes are those of the conventions, each from a label that the family has', t => {
  for (const { name, labels, otel } of mappedFamilies(t)) {
    const renamed = Object.entries(otel.attributes ?? {})
    for (const label of [...renamed.map(([label]) => label), ...(otel.id ?? [])])
      assert.ok(labels.includes(label), `${name} has no label ${label}`)
    const made = [...renamed.map(([, attribute]) => attribute), ...Object.keys(otel.constant ?? {})]
    if (otel.id) made.push('hw.id')
    assert.equal(new Set(made).size, made.length, `${name} makes an attribute twice`)
    for (const attribute of made) assert.ok(attributes.has(attribute), `${name}: ${attribute}`)
    if (otel.values) assert.ok(renamed.length > 0, `${name} has values for no attribute`)
    if (otel.name.startsWith('hw.')) assert.ok(made.includes('hw.id'), `${name} tells no component`)
  }
})

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
