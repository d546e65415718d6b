import { ipText } from '../../../foundation/lib/ip-text.ts'
import { Attributes, askKernel, protocols, Range } from '../../../kernel/netlink.ts'
import { linkNames } from './_rtnetlink.ts'
import { collector, gauge } from './collector.ts'

const info = gauge('network_route_info', 'Unicast routes of all routing tables. The value is 1.', {
  labels: ['dest', 'device', 'gw', 'priority', 'proto', 'src', 'weight'],
})
const routes = gauge('network_routes', 'Unicast routes by network device.', { labels: ['device'] })

/** Maximum routes; a series per route is not useful for a router with more. */
const most = 100_000

const getRoute = 26
/** Bytes of `struct rtmsg`. */
const headerBytes = 12
/** Bytes of `struct rtnexthop`. */
const hopBytes = 8
const unicast = 1
/** linux/rtnetlink.h */
const attribute = { destination: 1, device: 4, gateway: 5, priority: 6, source: 7, multipath: 9 } as const

/** Origin of a route by number (linux/rtnetlink.h), in the terms of the replaced exporter. */
const protocolNames: Readonly<Record<number, string>> = {
  0: 'unspec',
  1: 'redirect',
  2: 'kernel',
  3: 'boot',
  4: 'static',
  8: 'gated',
  9: 'ra',
  10: 'mrt',
  11: 'zebra',
  12: 'bird',
  13: 'dnrouted',
  14: 'xorp',
  15: 'ntk',
  16: 'dhcp',
  17: 'mrouted',
  42: 'babel',
  186: 'bgp',
  187: 'isis',
  188: 'ospf',
  189: 'rip',
  192: 'eigrp',
}

/** Routing tables, from rtnetlink(7). */
export const network_route = collector({
  name: 'network_route',
  summary: 'Routing tables',
  source: 'rtnetlink(7)',
  enabledByDefault: false,
  metrics: [info, routes],
  start: () => ({
    collect(readings) {
      const names = linkNames()
      const counts = new Map<string, number>()
      let total = 0
      const show = (index: number, gateway: string, weight: string): void => {
        if (++total > most) throw new Error(`cannot show more than ${most} routes`)
        const device = names.get(index) ?? ''
        counts.set(device, (counts.get(device) ?? 0) + 1)
        readings.setAll(info, 1, [destination, device, gateway, priority, proto, source, weight])
      }
      const attributes = new Attributes()
      const inner = new Attributes()
      const hop = new Range()
      let [destination, source, priority, proto] = ['', '', '', '']
      askKernel(protocols.route, { type: getRoute, payload: Buffer.alloc(headerBytes) }, route => {
        if (route.u8(7) !== unicast) return
        let gateway = ''
        let device = 0
        let hops: Buffer | undefined
        ;[destination, source, priority] = ['default', '', '0']
        proto = protocolNames[route.u8(5)] ?? 'unknown'
        const prefix = route.u8(1)
        for (attributes.within(route, headerBytes); attributes.next(); ) {
          const { type } = attributes
          if (type === attribute.destination && prefix > 0)
            destination = `${ipText(attributes.view())}/${prefix}`
          else if (type === attribute.source) source = ipText(attributes.view())
          else if (type === attribute.gateway) gateway = ipText(attributes.view())
          else if (type === attribute.priority) priority = String(attributes.u32())
          else if (type === attribute.device) device = attributes.u32()
          else if (type === attribute.multipath) hops = attributes.view()
        }
        if (hops === undefined || hops.length === 0) {
          show(device, gateway, '')
          return
        }
        for (let at = 0; at < hops.length; ) {
          hop.reset(hops, at, hops.length)
          const length = hop.u16()
          if (length < hopBytes || length > hop.length)
            throw new Error(`cannot read a route: a next hop of ${length} bytes`)
          hop.reset(hops, at, at + length)
          let hopGateway = ''
          for (inner.within(hop, hopBytes); inner.next(); )
            if (inner.type === attribute.gateway) hopGateway = ipText(inner.view())
          show(hop.u32(4), hopGateway, String(hop.u8(3) + 1))
          at += (length + 3) & ~3
        }
      })
      for (const [device, count] of counts) readings.set(routes, count, device)
    },
  }),
})
