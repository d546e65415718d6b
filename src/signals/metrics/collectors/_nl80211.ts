// Wireless networks from the kernel, over generic netlink (linux/nl80211.h).

import { macText } from '../../../foundation/lib/ip-text.ts'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'
import {
  Attributes,
  askKernel,
  attribute as encode,
  genericFamily,
  protocols,
  type Range,
  u32,
} from '../../../kernel/netlink.ts'

export interface WifiInterface {
  /** Name; '' for an interface without a network device. */
  readonly name: string
  readonly megahertz: number
  /** Attributes for further requests about it. */
  readonly id: readonly Buffer[]
}

/** Network of an interface. */
export interface WifiNetwork {
  readonly bssid: string
  readonly ssid: string
  readonly status: number
}

/** Remote end of a link. Rates are in bit/s. */
export interface WifiStation {
  readonly address: string
  readonly connectedSeconds: number
  readonly inactiveSeconds: number
  readonly receiveRate: number
  readonly transmitRate: number
  readonly receivedBytes: number
  readonly transmittedBytes: number
  readonly receivedPackets: number
  readonly transmittedPackets: number
  readonly signalDbm: number
  readonly retries: number
  readonly failed: number
  readonly beaconLoss: number
}

export interface WifiSource {
  interfaces(): readonly WifiInterface[]
  network(of: WifiInterface): WifiNetwork | undefined
  stations(of: WifiInterface): readonly WifiStation[]
}

const command = { interfaces: 5, stations: 17, networks: 32 } as const
const attribute = { index: 3, name: 4, address: 6, station: 21, frequency: 38, network: 47 } as const
/** Bytes of `struct genlmsghdr`. */
const headerBytes = 4

/** Wireless data from the kernel; undefined without wireless support. */
export function kernelWifi(): WifiSource | undefined {
  const family = genericFamily('nl80211')
  if (family === undefined) return undefined
  const ask = <T>(what: number, parts: readonly Buffer[], read: (message: Range) => T | undefined) => {
    const found: T[] = []
    const payload = Buffer.concat([Uint8Array.of(what, 1, 0, 0), ...parts])
    askKernel(protocols.generic, { type: family, payload }, message => {
      const one = read(message)
      if (one !== undefined) found.push(one)
    })
    return found
  }
  return {
    interfaces: () => ask(command.interfaces, [], readInterface),
    network: ({ id }) => ask(command.networks, id, readNetwork)[0],
    stations: ({ id }) => ask(command.stations, id, readStation),
  }
}

export function readInterface(message: Range): WifiInterface {
  const attributes = new Attributes()
  let name = ''
  let megahertz = 0
  const id: Buffer[] = []
  for (attributes.within(message, headerBytes); attributes.next(); ) {
    const { type } = attributes
    if (type === attribute.name) name = attributes.text()
    else if (type === attribute.frequency) megahertz = attributes.u32()
    else if (type === attribute.index) id.push(encode(type, u32(attributes.u32())))
    else if (type === attribute.address) id.push(encode(type, attributes.view()))
  }
  return { name, megahertz, id }
}

/** Network in a scan result; undefined if the interface does not belong to it. */
export function readNetwork(message: Range): WifiNetwork | undefined {
  const attributes = new Attributes()
  const inner = new Attributes()
  for (attributes.within(message, headerBytes); attributes.next(); ) {
    if (attributes.type !== attribute.network) continue
    let [bssid, ssid] = ['', '']
    let status: number | undefined
    for (inner.within(attributes); inner.next(); ) {
      if (inner.type === 1) bssid = macText(inner.view())
      else if (inner.type === 6) ssid = ssidOf(inner.view())
      else if (inner.type === 9) status = inner.u32()
    }
    if (status !== undefined) return { bssid, ssid, status }
  }
  return undefined
}

/** The SSID among information elements (IEEE 802.11, 9.4.2): number, length, content. */
function ssidOf(elements: Buffer): string {
  for (let at = 0; at + 2 <= elements.length; at += 2 + elements[at + 1]!) {
    const end = at + 2 + elements[at + 1]!
    if (elements[at] === 0 && end <= elements.length) return utf8Text(elements, at + 2, end)
  }
  return ''
}

export function readStation(message: Range): WifiStation | undefined {
  const attributes = new Attributes()
  const inner = new Attributes()
  let address = ''
  for (attributes.within(message, headerBytes); attributes.next(); ) {
    if (attributes.type === attribute.address) address = macText(attributes.view())
    if (attributes.type !== attribute.station) continue
    const found: { -readonly [P in keyof WifiStation]: WifiStation[P] } = { ...silent, address }
    for (inner.within(attributes); inner.next(); ) {
      const { type } = inner
      if (type === 1) found.inactiveSeconds = inner.u32() / 1000
      // The 32-bit counters are sent too, before those of 64 bits.
      else if (type === 2) found.receivedBytes ||= inner.u32()
      else if (type === 3) found.transmittedBytes ||= inner.u32()
      else if (type === 7) found.signalDbm = (inner.u8() << 24) >> 24
      else if (type === 8) found.transmitRate = readRate(inner)
      else if (type === 9) found.receivedPackets = inner.u32()
      else if (type === 10) found.transmittedPackets = inner.u32()
      else if (type === 11) found.retries = inner.u32()
      else if (type === 12) found.failed = inner.u32()
      else if (type === 14) found.receiveRate = readRate(inner)
      else if (type === 16) found.connectedSeconds = inner.u32()
      else if (type === 18) found.beaconLoss = inner.u32()
      else if (type === 23) found.receivedBytes = inner.u64()
      else if (type === 24) found.transmittedBytes = inner.u64()
    }
    return found
  }
  return undefined
}

const silent: Omit<WifiStation, 'address'> = {
  connectedSeconds: 0,
  inactiveSeconds: 0,
  receiveRate: 0,
  transmitRate: 0,
  receivedBytes: 0,
  transmittedBytes: 0,
  receivedPackets: 0,
  transmittedPackets: 0,
  signalDbm: 0,
  retries: 0,
  failed: 0,
  beaconLoss: 0,
}

/** Rate in bit/s; the kernel reports it in 100 kbit/s, in 16 bits, and in 32 bits if supported. */
function readRate(info: Range): number {
  const attributes = new Attributes()
  let rate = 0
  for (attributes.within(info); attributes.next(); ) {
    if (attributes.type === 1) rate ||= attributes.u16()
    else if (attributes.type === 5) rate = attributes.u32()
  }
  return rate * 100_000
}
