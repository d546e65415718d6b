// Network devices and their traffic.
import type { Row } from './dashboard.ts'
import type { Panel, Queries } from './panel.ts'
import { lines } from './panel-kinds.ts'

/** Counters of a device, in and out. */
function device(title: string, description: string, unit: string, name: string, factor = ''): Panel {
  const both: Queries = {
    'Rx {{device}}': `rate(node_network_receive_${name}_total{HOST}[RATE])${factor}`,
    'Tx {{device}}': `rate(node_network_transmit_${name}_total{HOST}[RATE])${factor}`,
  }
  return lines(title, description, unit, both, { below: 'Tx.*' })
}

export const trafficRow: Row = {
  title: 'Network Traffic',
  folded: true,
  panels: [
    device('Network Traffic by Bytes', 'Bytes in and out by device.', 'Bps', 'bytes'),
    device('Network Traffic by Packets', 'Packets in and out by device.', 'pps', 'packets'),
    device('Network Traffic Errors', 'Corrupt packets.', 'pps', 'errs'),
    device('Network Traffic Drop', 'Dropped packets.', 'pps', 'drop'),
    device('Network Traffic Fifo', 'Packets lost because a device buffer was full.', 'pps', 'fifo'),
    device('Network Traffic Compressed', 'Compressed packets.', 'pps', 'compressed'),
    lines('Network Traffic Multicast', 'Multicast packets.', 'pps', {
      'Rx {{device}}': 'rate(node_network_receive_multicast_total{HOST}[RATE])',
    }),
    lines('Network Traffic Frame, Carrier, Colls', 'Corrupt frames, carrier losses, collisions.', 'pps', {
      'Frame {{device}}': 'rate(node_network_receive_frame_total{HOST}[RATE])',
      'Carrier {{device}}': 'rate(node_network_transmit_carrier_total{HOST}[RATE])',
      'Colls {{device}}': 'rate(node_network_transmit_colls_total{HOST}[RATE])',
    }),
    lines(
      'NF Conntrack',
      'Connections tracked by netfilter, and the limit.',
      'short',
      {
        Entries: 'node_nf_conntrack_entries{HOST}',
        Limit: 'node_nf_conntrack_entries_limit{HOST}',
      },
      { min: 0 },
    ),
    lines(
      'ARP Entries',
      'Neighbours by device.',
      'short',
      { '{{device}}': 'node_arp_entries{HOST}' },
      { min: 0 },
    ),
    lines(
      'MTU',
      'Largest packet of each device.',
      'bytes',
      { '{{device}}': 'node_network_mtu_bytes{HOST}' },
      { min: 0 },
    ),
    lines('Speed', 'Speed of each device, if it reports one.', 'Bps', {
      '{{device}}': 'node_network_speed_bytes{HOST}',
    }),
    lines(
      'Softnet Packets',
      'Packets that CPUs received from devices, and packets dropped because a queue was full.',
      'pps',
      {
        'CPU {{cpu}} processed': 'rate(node_softnet_processed_total{HOST}[RATE])',
        'CPU {{cpu}} dropped': 'rate(node_softnet_dropped_total{HOST}[RATE])',
      },
      { below: '.*dropped' },
    ),
    lines(
      'Network Operational Status',
      '1 where a device is up.',
      'short',
      { '{{device}}': 'node_network_up{HOST}' },
      { min: 0, max: 1 },
    ),
  ],
}
