// Properties of network devices over rtnetlink(7) and ethtool's netlink: one request instead of one file each, and
// without the kernel lock of some of those files.

import { macText } from '../../../foundation/lib/ip-text.ts'
import { Attributes, askKernel, attribute, genericFamily, protocols } from '../../../kernel/netlink.ts'
import { bytesPerMegabit, links } from './_link-properties.ts'
import { PropertyFile } from './_property-file.ts'
import { eachLink, linkAttribute, linkCounters, linkHeaderBytes } from './_rtnetlink.ts'
import { type Env, type Family, gauge, type Readings } from './collector.ts'

/** Without `adminstate`, as in the netlink mode of the replaced exporter. */
const info = gauge('network_info', 'Properties of network devices that are texts. The value is 1.', {
  labels: ['address', 'broadcast', 'device', 'duplex', 'ifalias', 'operstate'],
})
const altnames = gauge('network_altnames_info', 'Further names of network devices. The value is 1.', {
  labels: ['altname', 'device'],
})

/** Gauges in the replaced exporter. */
const counters = linkCounters.map(name =>
  gauge(`network_${name}_total`, `The counter ${name} of a network device.`, { labels: ['device'] }),
)

/** Families only shown over netlink. */
export const netlinkFamilies: readonly Family[] = [altnames]

export interface LinkPropertiesOptions {
  readonly shows: (device: string) => boolean
  readonly ignoresInvalidSpeed: boolean
  readonly withCounters: boolean
}

const operstates = ['unknown', 'notpresent', 'down', 'lowerlayerdown', 'testing', 'dormant', 'up']
const up = 6

/** Link attributes shown unchanged, of 1 or 4 bytes. */
const numbers: ReadonlyMap<number, readonly Family[]> = new Map([
  [4, [links.mtu]],
  [13, [links.transmit_queue_length]],
  // The replaced exporter shows both.
  [17, [links.iface_link_mode, links.dormant]],
  [27, [links.net_dev_group]],
  [33, [links.carrier]],
  [35, [links.carrier_changes]],
  [47, [links.carrier_up_changes]],
  [48, [links.carrier_down_changes]],
])
const known = { address: 1, broadcast: 2, link: 5, operstate: 16, properties: 52, altname: 53 } as const

/** Shows all links. */
export function readLinkProperties(
  readings: Readings,
  { host, log }: Env,
  { shows, ignoresInvalidSpeed, withCounters }: LinkPropertiesOptions,
): void {
  const modes = linkModes()
  if (modes === undefined) log.debug('this kernel does not report link speeds over netlink')
  for (const [device, { speed }] of modes ?? [])
    if (shows(device) && !(ignoresInvalidSpeed && speed === unknownSpeed))
      readings.set(links.speed, speed * bytesPerMegabit, device)
  const attributes = new Attributes()
  const inner = new Attributes()
  eachLink(message => {
    const device = nameOf(attributes.within(message, linkHeaderBytes))
    if (device === undefined || !shows(device)) return
    const index = message.u32(4)
    let [address, broadcast, alias, operstate, link] = ['', '', '', 0, index]
    for (attributes.within(message, linkHeaderBytes); attributes.next(); ) {
      const { type } = attributes
      const families = numbers.get(type)
      if (families !== undefined) {
        const value = attributes.length >= 4 ? attributes.u32() : attributes.u8()
        for (const family of families) readings.set(family, value, device)
      } else if (type === known.address) address = macText(attributes.view())
      else if (type === known.broadcast) broadcast = macText(attributes.view())
      else if (type === known.link) link = attributes.u32() || index
      else if (type === known.operstate) operstate = attributes.u8()
      else if (type === linkAttribute.alias) alias = attributes.text()
      else if (type === known.properties) {
        for (inner.within(attributes); inner.next(); )
          if (inner.type === known.altname) readings.set(altnames, 1, inner.text(), device)
      } else if (type === linkAttribute.counters && withCounters) {
        for (let i = 0; i < counters.length && (i + 1) * 8 <= attributes.length; i++)
          readings.set(counters[i]!, attributes.u64(i * 8), device)
      }
    }
    const duplex = modes?.get(device)?.duplex ?? ''
    const state = operstates[operstate] ?? 'unknown'
    readings.setAll(info, 1, [address, broadcast, device, duplex, alias, state])
    readings.set(links.up, operstate === up ? 1 : 0, device)
    readings.set(links.iface_id, index, device)
    readings.set(links.iface_link, link, device)
    readings.set(links.flags, message.u32(8), device)
    readings.set(links.protocol_type, message.u16(2), device)
    for (const [file, family] of files) {
      const value = new PropertyFile(host.sys, `class/net/${device}/${file}`).number()
      if (value !== undefined) readings.set(family, value, device)
    }
  })
}

/** Properties that netlink does not have. */
const files: readonly (readonly [file: string, family: Family])[] = [
  ['addr_assign_type', links.address_assign_type],
  ['dev_id', links.device_id],
  ['name_assign_type', links.name_assign_type],
]

function nameOf(attributes: Attributes): string | undefined {
  while (attributes.next()) if (attributes.type === linkAttribute.name) return attributes.text()
  return undefined
}

/** SPEED_UNKNOWN of the kernel, which the replaced exporter shows as a speed. */
const unknownSpeed = 2 ** 32 - 1
const duplexes = ['Half', 'Full']

interface LinkMode {
  speed: number
  duplex: string
}

const getLinkModes = 4
const modeAttribute = { header: 1, speed: 5, duplex: 6 } as const
const headerName = 2

/** Speed in Mbit/s and duplex by device (linux/ethtool_netlink.h, Linux 5.6); undefined on older kernels. */
function linkModes(): ReadonlyMap<string, LinkMode> | undefined {
  const family = genericFamily('ethtool')
  if (family === undefined) return undefined
  const modes = new Map<string, LinkMode>()
  const payload = Buffer.concat([
    Uint8Array.of(getLinkModes, 1, 0, 0),
    attribute(modeAttribute.header | 0x8000, new Uint8Array(0)),
  ])
  const attributes = new Attributes()
  const inner = new Attributes()
  askKernel(protocols.generic, { type: family, payload }, message => {
    const mode: LinkMode = { speed: 0, duplex: 'Half' }
    let device = ''
    for (attributes.within(message, 4); attributes.next(); ) {
      if (attributes.type === modeAttribute.speed) mode.speed = attributes.u32()
      else if (attributes.type === modeAttribute.duplex) mode.duplex = duplexes[attributes.u8()] ?? 'Unknown'
      else if (attributes.type === modeAttribute.header)
        for (inner.within(attributes); inner.next(); ) if (inner.type === headerName) device = inner.text()
    }
    if (device !== '') modes.set(device, mode)
  })
  return modes
}
