// Properties of network devices, from files or netlink.

import { counter, type Family, gauge } from './collector.ts'

const labels = ['device']

function property(name: string, help: string, unit?: string): Family {
  return gauge(`network_${name}`, help, { labels, ...(unit === undefined ? {} : { unit }) })
}

function changes(name: string, help: string): Family {
  return counter(`network_${name}_total`, help, { labels })
}

export const links = {
  address_assign_type: property(
    'address_assign_type',
    'How the hardware address of a network device came to be: 0 permanent, 1 random, 2 taken over, 3 set.',
  ),
  carrier: gauge('network_carrier', 'Whether a network device has a carrier (1), or not (0).', {
    labels,
    otel: { name: 'hw.network.up', unit: '1', kind: 'updowncounter', attributes: { device: 'hw.id' } },
  }),
  carrier_changes: changes('carrier_changes', 'How often a network device gained or lost its carrier.'),
  carrier_up_changes: changes('carrier_up_changes', 'How often a network device gained its carrier.'),
  carrier_down_changes: changes('carrier_down_changes', 'How often a network device lost its carrier.'),
  device_id: property('device_id', 'Number that tells apart network devices with one hardware address.'),
  dormant: property(
    'dormant',
    'Whether a network device waits for an event before it is up (1), or not (0).',
  ),
  flags: property('flags', 'Flags of a network device (IFF_* of the kernel).'),
  iface_id: property('iface_id', 'Index of a network device.'),
  iface_link: property(
    'iface_link',
    'Index of the network device that a device sends through: itself or another.',
  ),
  iface_link_mode: property('iface_link_mode', 'Link mode of a network device: 0 default, 1 dormant.'),
  mtu: property('mtu_bytes', 'Most bytes that a network device sends as one packet.'),
  name_assign_type: property(
    'name_assign_type',
    'How a network device got its name: 1 by the kernel in order, 2 predictably by the kernel, 3 by user space, 4 renamed.',
  ),
  net_dev_group: property('net_dev_group', 'Group that a network device is in.'),
  protocol_type: property('protocol_type', 'Hardware type of a network device (ARPHRD_* of the kernel).'),
  speed: gauge('network_speed_bytes', 'Speed of the link of a network device, in bytes per second.', {
    labels,
    unit: 'By/s',
    otel: {
      name: 'hw.network.bandwidth.limit',
      unit: 'By/s',
      kind: 'updowncounter',
      attributes: { device: 'hw.id' },
      // Drivers report -1 without a link.
      least: 0,
    },
  }),
  transmit_queue_length: property(
    'transmit_queue_length',
    'Most packets in the send queue of a network device.',
  ),
  up: property('up', 'Whether the operational state of a network device is up (1), or not (0).'),
} as const

export const linkInfo = gauge(
  'network_info',
  'Properties of network devices that are texts. The value is 1.',
  {
    labels: ['address', 'adminstate', 'broadcast', 'device', 'duplex', 'ifalias', 'operstate'],
  },
)

/** Speeds are in Mbit/s. */
export const bytesPerMegabit = 1_000_000 / 8
