import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { Turn } from '../../../foundation/lib/turn.ts'
import { boolean, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { bytesPerMegabit, linkInfo, links } from './_link-properties.ts'
import { netDevices } from './_net-devices.ts'
import { netlinkFamilies, readLinkProperties } from './_netclass-rtnl.ts'
import { PropertyFile } from './_property-file.ts'
import { collector, type Family, type Readings, type Tree } from './collector.ts'

/** A file below /sys/class/net/<device> with a number. */
interface Property {
  readonly file: string
  readonly family: Family
  readonly scale: number
}

/** Properties that are constant while a device keeps its index and address. */
const fixed: readonly Property[] = [
  { file: 'addr_assign_type', family: links.address_assign_type, scale: 1 },
  { file: 'dev_id', family: links.device_id, scale: 1 },
  { file: 'name_assign_type', family: links.name_assign_type, scale: 1 },
]

const changing: readonly Property[] = [
  { file: 'carrier', family: links.carrier, scale: 1 },
  { file: 'carrier_changes', family: links.carrier_changes, scale: 1 },
  { file: 'carrier_up_count', family: links.carrier_up_changes, scale: 1 },
  { file: 'carrier_down_count', family: links.carrier_down_changes, scale: 1 },
  { file: 'dormant', family: links.dormant, scale: 1 },
  { file: 'iflink', family: links.iface_link, scale: 1 },
  { file: 'link_mode', family: links.iface_link_mode, scale: 1 },
  { file: 'mtu', family: links.mtu, scale: 1 },
  { file: 'netdev_group', family: links.net_dev_group, scale: 1 },
  { file: 'speed', family: links.speed, scale: bytesPerMegabit },
  { file: 'tx_queue_len', family: links.transmit_queue_length, scale: 1 },
  { file: 'type', family: links.protocol_type, scale: 1 },
]

/** Properties of network devices, from /sys/class/net or netlink. */
export const netclass = collector({
  name: 'netclass',
  summary: 'Properties of network devices',
  source: '/sys/class/net',
  enabledByDefault: true,
  metrics: [...Object.values(links), linkInfo, ...netlinkFamilies],
  options: {
    ignored_devices: key(regex, '^$', 'Regular expression for devices to exclude.'),
    ignore_invalid_speed: key(boolean, false, 'Leaves out speeds that are not known.'),
    netlink: key(boolean, false, 'Asks over netlink instead of reading /sys/class/net.'),
    rtnl_with_stats: key(boolean, false, 'Shows traffic statistics too when netlink is asked.'),
  },
  flags: { rtnl_with_stats: 'netclass_rtnl.with-stats' },
  start: ({ ignored_devices, ignore_invalid_speed, netlink, rtnl_with_stats }, { host, log }) => {
    const ignored = linearRegExp(ignored_devices)
    const shows = (device: string): boolean => !ignored.test(device)
    if (netlink) {
      const options = { shows, ignoresInvalidSpeed: ignore_invalid_speed, withCounters: rtnl_with_stats }
      return { collect: readings => readLinkProperties(readings, { host, log }, options) }
    }
    let devices: ReadonlyMap<string, Device> = new Map()
    return {
      // A host of containers has hundreds of devices, and each takes 0.1 ms.
      async wait(signal) {
        const read = new Map<string, Device>()
        const turn = new Turn(2)
        for (const name of netDevices(host.sys).filter(shows)) {
          const device = devices.get(name) ?? new Device(host.sys, name, ignore_invalid_speed)
          if (device.read()) read.set(name, device)
          await turn.rest()
          signal.throwIfAborted()
        }
        devices = read
      },
      collect(readings) {
        for (const device of devices.values()) device.show(readings)
      },
    }
  },
})

/** One device and its known properties. */
class Device {
  readonly #sys: Tree
  readonly #name: string
  readonly #ignoresInvalidSpeed: boolean
  readonly #files = new Map<string, PropertyFile>()
  /** Files of `changing`, in its order. */
  readonly #changing: readonly PropertyFile[]
  /** Index and address, as another device may reuse the name. */
  #identity = ''
  #fixed: readonly (readonly [family: Family, value: number])[] = []
  #broadcast = ''
  /** Flags and state: a driver may know the speed only in some states. */
  #state = ''
  #index: number | undefined
  #flags: number | undefined
  #address = ''
  #operstate = ''
  #duplex = ''
  #alias = ''
  /** Values in the order of `changing`. */
  readonly #values: (number | undefined)[]

  constructor(sys: Tree, name: string, ignoresInvalidSpeed: boolean) {
    this.#sys = sys
    this.#name = name
    this.#ignoresInvalidSpeed = ignoresInvalidSpeed
    this.#changing = changing.map(({ file }) => this.#file(file))
    this.#values = changing.map(() => undefined)
  }

  /** Reads the device. False if it is gone. */
  read(): boolean {
    this.#index = this.#file('ifindex').number()
    if (this.#index === undefined && !this.#sys.exists(`class/net/${this.#name}`)) return false
    this.#flags = this.#file('flags').number()
    this.#address = this.#file('address').text()
    this.#operstate = this.#file('operstate').text()
    this.#refresh(`${this.#index} ${this.#address}`, `${this.#flags} ${this.#operstate}`)
    for (let i = 0; i < changing.length; i++) this.#values[i] = this.#changing[i]!.number()
    this.#duplex = this.#file('duplex').text()
    this.#alias = this.#file('ifalias').text()
    return true
  }

  show(readings: Readings): void {
    const name = this.#name
    const flags = this.#flags
    if (this.#index !== undefined) readings.set(links.iface_id, this.#index, name)
    if (flags !== undefined) readings.set(links.flags, flags, name)
    for (const [family, value] of this.#fixed) readings.set(family, value, name)
    for (let i = 0; i < changing.length; i++) {
      const { family, scale } = changing[i]!
      const value = this.#values[i]
      if (value === undefined || (value < 0 && family === links.speed && this.#ignoresInvalidSpeed)) continue
      readings.set(family, value * scale, name)
    }
    const admin = flags === undefined ? 'unknown' : (flags & 1) === 1 ? 'up' : 'down'
    readings.setAll(linkInfo, 1, [
      this.#address,
      admin,
      this.#broadcast,
      name,
      this.#duplex,
      this.#alias,
      this.#operstate,
    ])
    readings.set(links.up, this.#operstate === 'up' ? 1 : 0, name)
  }

  #refresh(identity: string, state: string): void {
    if (identity === this.#identity && state === this.#state) return
    for (const file of this.#files.values()) file.tryAgain()
    this.#state = state
    if (identity === this.#identity) return
    this.#identity = identity
    this.#broadcast = this.#file('broadcast').text()
    this.#fixed = fixed.flatMap(({ file, family }) => {
      const value = this.#file(file).number()
      return value === undefined ? [] : [[family, value] as const]
    })
  }

  #file(file: string): PropertyFile {
    let known = this.#files.get(file)
    if (known === undefined) {
      known = new PropertyFile(this.#sys, `class/net/${this.#name}/${file}`)
      this.#files.set(file, known)
    }
    return known
  }
}
