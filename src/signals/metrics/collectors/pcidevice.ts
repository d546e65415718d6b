import { readFileSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { boolean, path as pathKind } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { type PciIds, type PciNames, parsePciIds, pciNames } from './_pci-names.ts'
import { collector, type Env, gauge, NoData, type Readings, type Tree } from './collector.ts'

const labels = ['bus', 'device', 'function', 'segment']
const ids = ['class_id', 'device_id', 'revision', 'subsystem_device_id', 'subsystem_vendor_id', 'vendor_id']
const parents = ['parent_bus', 'parent_device', 'parent_function', 'parent_segment']
const names = ['class_name', 'device_name', 'subsystem_device_name', 'subsystem_vendor_name', 'vendor_name']

const infoHelp = 'What a PCI device is and what it hangs on. The value is 1.'
const info = gauge('pcidevice_info', infoHelp, { labels: [...labels, ...ids, ...parents].sort() })
const namedInfo = gauge('pcidevice_info', infoHelp, {
  labels: [...labels, ...ids, ...parents, ...names].sort(),
})
const maxSpeed = gauge(
  'pcidevice_max_link_transfers_per_second',
  'Transfers a second that the device could do; -1 where that is not known.',
  { labels, unit: '{transfer}/s' },
)
const maxWidth = gauge(
  'pcidevice_max_link_width',
  'Lanes that the device could use; -1 where that is not known.',
  {
    labels,
  },
)
const speed = gauge(
  'pcidevice_current_link_transfers_per_second',
  'Transfers a second of the link as it runs; -1 where that is not known.',
  { labels, unit: '{transfer}/s' },
)
const width = gauge('pcidevice_current_link_width', 'Lanes that the link uses; -1 where that is not known.', {
  labels,
})
const coldAllowed = gauge(
  'pcidevice_d3cold_allowed',
  'Whether the device may lose its power (1), or not (0).',
  {
    labels,
  },
)
const autoprobe = gauge(
  'pcidevice_sriov_drivers_autoprobe',
  'Whether drivers take new virtual functions (SR-IOV) by themselves (1), or not (0).',
  { labels },
)
const functions = gauge('pcidevice_sriov_numvfs', 'Virtual functions (SR-IOV) that are on.', { labels })
const totalFunctions = gauge(
  'pcidevice_sriov_totalvfs',
  'Virtual functions (SR-IOV) that the device could have.',
  {
    labels,
  },
)
const vectors = gauge(
  'pcidevice_sriov_vf_total_msix',
  'MSI-X vectors that virtual functions (SR-IOV) may share.',
  { labels },
)
const numaNode = gauge(
  'pcidevice_numa_node',
  'NUMA node of the device; none where it belongs to no single one.',
  {
    labels,
  },
)
const powerState = gauge(
  'pcidevice_power_state',
  'Whether the device is in this state of power (1), or not (0).',
  {
    labels: [...labels, 'state'],
  },
)
const powerStates = ['D0', 'D1', 'D2', 'D3hot', 'D3cold', 'unknown', 'error']

/** Paths below the host's root directory. */
const idsFiles = ['usr/share/misc/pci.ids', 'usr/share/hwdata/pci.ids']
/** The file has 1.5 MB (2026). */
const mostIdsBytes = 16 * 1024 * 1024

/** Attributes with one number, 0 if missing. */
const numbers = [
  [coldAllowed, 'd3cold_allowed', true],
  [autoprobe, 'sriov_drivers_autoprobe', true],
  [functions, 'sriov_numvfs', false],
  [totalFunctions, 'sriov_totalvfs', false],
  [vectors, 'sriov_vf_total_msix', false],
] as const

/** Constant properties of a device. */
interface Device {
  readonly path: string
  /** First labels of `powerState`, and all labels of the other families. */
  readonly place: readonly [bus: string, device: string, fn: string, segment: string]
  /** Values by label. */
  readonly facts: ReadonlyMap<string, string>
  readonly ids: PciIds
  readonly maxSpeed: number
  readonly maxWidth: number
  infoLabels: readonly string[]
}

/** Devices on PCI buses, from /sys/bus/pci/devices (Documentation/PCI/sysfs-pci.rst). */
export const pcidevice = collector({
  name: 'pcidevice',
  summary: 'Devices on PCI buses: identity, links, power',
  source: '/sys/bus/pci/devices',
  enabledByDefault: false,
  metrics: [
    info,
    namedInfo,
    maxSpeed,
    maxWidth,
    speed,
    width,
    powerState,
    numaNode,
    ...numbers.map(([family]) => family),
  ],
  options: {
    names: key(boolean, false, 'Shows names of vendors, devices and classes, from the file pci.ids.'),
    idsfile: key(pathKind, '', 'The file pci.ids; empty to find it in /usr/share.'),
  },
  start(options, env) {
    const { sys } = env.host
    const devices = new Map<string, Device>()
    return {
      collect(readings) {
        const found = sys.list('bus/pci/devices')
        if (found.length === 0 && !sys.exists('bus/pci/devices'))
          throw new NoData(`${sys.at('bus/pci/devices')} not found: this host has no PCI bus`)
        const present = new Set(found)
        for (const name of devices.keys()) if (!present.has(name)) devices.delete(name)
        const added = found.filter(name => !devices.has(name)).map(name => readDevice(sys, name))
        if (options.names && added.length > 0) addNames(added, env, options.idsfile)
        for (const device of added) devices.set(posix.basename(device.path), device)
        for (const device of devices.values()) show(readings, sys, device, options.names)
      },
    }
  },
})

function show(readings: Readings, sys: Tree, device: Device, named: boolean): void {
  const { path, place } = device
  readings.setAll(named ? namedInfo : info, 1, device.infoLabels)
  readings.setAll(maxSpeed, device.maxSpeed, place)
  readings.setAll(maxWidth, device.maxWidth, place)
  readings.setAll(speed, readSpeed(sys, `${path}/current_link_speed`), place)
  readings.setAll(width, readWidth(sys, `${path}/current_link_width`), place)
  for (const [family, file, isSwitch] of numbers) {
    const value = readNumber(sys, `${path}/${file}`) ?? 0
    readings.setAll(family, isSwitch && value !== 0 ? 1 : value, place)
  }
  const node = readNumber(sys, `${path}/numa_node`) ?? -1
  if (node !== -1) readings.setAll(numaNode, node, place)
  const state = sys.find(`${path}/power_state`) ?? ''
  if (state === '') return
  for (const each of powerStates) readings.setAll(powerState, each === state ? 1 : 0, [...place, each])
}

function readDevice(sys: Tree, name: string): Device {
  const path = `bus/pci/devices/${name}`
  const target = sys.link(path)
  const place = target === undefined ? undefined : parsePlace(posix.basename(target))
  if (place === undefined) throw new Error(`cannot read ${sys.at(path)}: not a link to a PCI device`)
  // A device on a root bus has no parent device.
  const parent = parsePlace(posix.basename(posix.dirname(target!))) ?? ['*', '*', '*', '*']
  const id = (file: string, digits: number) =>
    readId(sys, `${path}/${file}`).toString(16).padStart(digits, '0')
  const own = {
    class: id('class', 6),
    vendor: id('vendor', 4),
    device: id('device', 4),
    subsystemVendor: id('subsystem_vendor', 4),
    subsystemDevice: id('subsystem_device', 4),
  }
  const facts = new Map([
    ...labels.map((label, i) => [label, place[i]!] as const),
    ...parents.map((label, i) => [label, parent[i]!] as const),
    ['class_id', `0x${own.class}`],
    ['vendor_id', `0x${own.vendor}`],
    ['device_id', `0x${own.device}`],
    ['subsystem_vendor_id', `0x${own.subsystemVendor}`],
    ['subsystem_device_id', `0x${own.subsystemDevice}`],
    ['revision', `0x${id('revision', 2)}`],
  ])
  return {
    path,
    place,
    facts,
    ids: own,
    maxSpeed: readSpeed(sys, `${path}/max_link_speed`),
    maxWidth: readWidth(sys, `${path}/max_link_width`),
    infoLabels: info.labels.map(label => facts.get(label)!),
  }
}

/** Reads the file for new devices and keeps only their names: it has tens of thousands of others. */
function addNames(devices: readonly Device[], { host: { root }, log }: Env, idsFile: string): void {
  let text = ''
  const found = idsFiles.find(file => root.exists(file))
  const path = idsFile || root.at(found ?? idsFiles[0]!)
  try {
    if (idsFile === '' && found === undefined) throw new Error('file not found')
    const stat = statSync(path)
    if (!stat.isFile()) throw new Error('not a file')
    if (stat.size > mostIdsBytes) throw new Error(`longer than ${mostIdsBytes} bytes`)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    log.warn('cannot read the names of PCI devices', { path, error })
  }
  const all = parsePciIds(text)
  for (const device of devices) {
    const found: PciNames = pciNames(all, device.ids)
    const facts = new Map([
      ...device.facts,
      ['class_name', found.class],
      ['device_name', found.device],
      ['subsystem_device_name', found.subsystemDevice],
      ['subsystem_vendor_name', found.subsystemVendor],
      ['vendor_name', found.vendor],
    ])
    device.infoLabels = namedInfo.labels.map(label => facts.get(label)!)
  }
}

/** `0000:45:00.0`, in the order of `labels`; undefined if invalid. */
function parsePlace(text: string): Device['place'] | undefined {
  const match = /^([0-9a-f]{1,8}):([0-9a-f]{1,4}):([0-9a-f]{1,4})\.([0-9a-f]{1,4})$/i.exec(text)
  if (match === null) return undefined
  const part = (i: number, digits: number) =>
    Number.parseInt(match[i]!, 16).toString(16).padStart(digits, '0')
  return [part(2, 2), part(3, 2), part(4, 1), part(1, 4)]
}

function readId(sys: Tree, path: string): number {
  const text = sys.text(path).trim()
  if (!/^(0x[0-9a-f]{1,8}|\d{1,9})$/i.test(text)) throw new Error(`cannot read ${sys.at(path)}: no number`)
  return Number(text)
}

function readNumber(sys: Tree, path: string): number | undefined {
  const text = sys.find(path)
  if (text === undefined || text === '') return undefined
  if (!/^-?\d{1,20}$/.test(text)) throw new Error(`cannot read ${sys.at(path)}: no number`)
  return Number(text)
}

function readWidth(sys: Tree, path: string): number {
  return isUnknown(sys.find(path)) ? -1 : (readNumber(sys, path) ?? -1)
}

/** `8.0 GT/s PCIe`; Linux before 5.8 omits the last word. */
function readSpeed(sys: Tree, path: string): number {
  const text = sys.find(path)
  if (isUnknown(text)) return -1
  const match = /^(\d{1,6}(?:\.\d{1,6})?) GT\/s\b/.exec(text!)
  if (match === null) throw new Error(`cannot read ${sys.at(path)}: no speed`)
  return Number(match[1]) * 1e9
}

function isUnknown(text: string | undefined): boolean {
  return text === undefined || text === '' || text.startsWith('Unknown')
}
