// Requests of collectors to the kernel's network stack, over rtnetlink(7).

import { Attributes, askKernel, attribute, type Message, protocols, u32 } from '../../../kernel/netlink.ts'

const getLink = 18
/** Bytes of `struct ifinfomsg`. */
export const linkHeaderBytes = 16
/** Attributes of links (linux/if_link.h). */
export const linkAttribute = { name: 3, alias: 20, counters: 23, extensionMask: 29 } as const
/** `struct rtnl_link_stats64` by the order of its fields (linux/if_link.h). */
export const linkCounters = [
  'receive_packets',
  'transmit_packets',
  'receive_bytes',
  'transmit_bytes',
  'receive_errors',
  'transmit_errors',
  'receive_dropped',
  'transmit_dropped',
  'multicast',
  'collisions',
  'receive_length_errors',
  'receive_over_errors',
  'receive_crc_errors',
  'receive_frame_errors',
  'receive_fifo_errors',
  'receive_missed_errors',
  'transmit_aborted_errors',
  'transmit_carrier_errors',
  'transmit_fifo_errors',
  'transmit_heartbeat_errors',
  'transmit_window_errors',
  'receive_compressed',
  'transmit_compressed',
  'receive_nohandler',
] as const
/** RTEXT_FILTER_SKIP_STATS: counters are most of the work. */
const withoutCounters = attribute(linkAttribute.extensionMask, u32(8))
const attributes = new Attributes()

/** All links with all of their attributes. */
export function eachLink(each: (link: Message) => void): void {
  askKernel(protocols.route, { type: getLink, payload: Buffer.alloc(linkHeaderBytes) }, each)
}

/** Names of all links by their index. */
export function linkNames(): ReadonlyMap<number, string> {
  const names = new Map<number, string>()
  const payload = Buffer.concat([Buffer.alloc(linkHeaderBytes), withoutCounters])
  askKernel(protocols.route, { type: getLink, payload }, link => {
    for (attributes.within(link, linkHeaderBytes); attributes.next(); ) {
      if (attributes.type !== linkAttribute.name) continue
      names.set(link.u32(4), attributes.text())
      return
    }
  })
  return names
}
