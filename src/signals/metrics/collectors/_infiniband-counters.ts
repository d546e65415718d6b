import type { FamilyOptions } from '../../../foundation/model/collector.ts'
import { counter, type Family } from './collector.ts'

/** A file of a port. */
export interface Attribute {
  readonly family: Family
  /** Factor from the number in the file to the family's unit. */
  readonly factor: number
}

export const portLabels = { labels: ['device', 'port'] }

/** Counters that the semantic conventions have, by name. */
const conventions: Readonly<Record<string, FamilyOptions>> = {
  port_data_received_bytes: traffic('io', 'By', 'receive'),
  port_data_transmitted_bytes: traffic('io', 'By', 'transmit'),
  port_packets_received: traffic('packets', '{packet}', 'receive'),
  port_packets_transmitted: traffic('packets', '{packet}', 'transmit'),
  symbol_error: errors('symbol_error'),
  link_error_recovery: errors('link_error_recovery'),
  link_downed: errors('link_downed'),
  local_link_integrity_errors: errors('local_link_integrity'),
  excessive_buffer_overrun_errors: errors('excessive_buffer_overrun'),
  port_errors_received: errors('malformed', 'receive'),
  port_receive_remote_physical_errors: errors('remote_physical', 'receive'),
  port_receive_switch_relay_errors: errors('switch_relay', 'receive'),
  port_constraint_errors_received: errors('constraint', 'receive'),
  port_constraint_errors_transmitted: errors('constraint', 'transmit'),
}

/** Options of standard error counters; drivers' own counters count the same errors again, by effect. */
function errors(type: string, direction?: 'receive' | 'transmit'): FamilyOptions {
  return {
    otel: {
      name: 'hw.errors',
      unit: '{error}',
      kind: 'counter',
      id: ['device', 'port'],
      constant: {
        'hw.type': 'network',
        'error.type': type,
        ...(direction === undefined ? {} : { 'network.io.direction': direction }),
      },
    },
  }
}

function traffic(metric: string, unit: string, direction: 'receive' | 'transmit'): FamilyOptions {
  return {
    otel: {
      name: `hw.network.${metric}`,
      unit,
      kind: 'counter',
      id: ['device', 'port'],
      constant: { 'network.io.direction': direction },
    },
  }
}

type Row = readonly [file: string, name: string, help: string, factor?: number]

function table(rows: readonly Row[]): ReadonlyMap<string, Attribute> {
  return new Map(
    rows.map(([file, name, help, factor = 1]) => [
      file,
      { family: counter(`infiniband_${name}_total`, help, { ...portLabels, ...conventions[name] }), factor },
    ]),
  )
}

/** Data is counted in words of four bytes (InfiniBand Architecture Specification, PortCounters). */
const wordBytes = 4

/** Files of `counters`. */
export const portCounters = table([
  [
    'excessive_buffer_overrun_errors',
    'excessive_buffer_overrun_errors',
    'Overruns of the buffer that went on for longer than the port bears.',
  ],
  ['link_downed', 'link_downed', 'Times that the link failed and did not recover.'],
  ['link_error_recovery', 'link_error_recovery', 'Times that the link failed and recovered.'],
  [
    'local_link_integrity_errors',
    'local_link_integrity_errors',
    'Times that errors of the link came in greater number than the port bears.',
  ],
  [
    'multicast_rcv_packets',
    'multicast_packets_received',
    'Multicast packets received, broken ones included.',
  ],
  [
    'multicast_xmit_packets',
    'multicast_packets_transmitted',
    'Multicast packets sent, broken ones included.',
  ],
  [
    'port_rcv_constraint_errors',
    'port_constraint_errors_received',
    'Packets received that a rule of the port forbids.',
  ],
  ['port_rcv_data', 'port_data_received_bytes', 'Bytes received on all lanes.', wordBytes],
  [
    'port_rcv_discards',
    'port_discards_received',
    'Packets received and dropped as the port was down or full.',
  ],
  ['port_rcv_errors', 'port_errors_received', 'Packets received with an error.'],
  ['port_rcv_packets', 'port_packets_received', 'Packets received, broken ones included.'],
  [
    'port_rcv_remote_physical_errors',
    'port_receive_remote_physical_errors',
    'Packets received that were marked as broken on their way.',
  ],
  [
    'port_rcv_switch_relay_errors',
    'port_receive_switch_relay_errors',
    'Packets received that the switch could not pass on.',
  ],
  [
    'port_xmit_constraint_errors',
    'port_constraint_errors_transmitted',
    'Packets not sent as a rule of the port forbids them.',
  ],
  ['port_xmit_data', 'port_data_transmitted_bytes', 'Bytes sent on all lanes.', wordBytes],
  ['port_xmit_discards', 'port_discards_transmitted', 'Packets not sent as the port was down or full.'],
  ['port_xmit_packets', 'port_packets_transmitted', 'Packets sent, broken ones included.'],
  ['port_xmit_wait', 'port_transmit_wait', 'Ticks in which the port had something to send and could not.'],
  ['symbol_error', 'symbol_error', 'Small errors on one or more lanes of the link.'],
  ['unicast_rcv_packets', 'unicast_packets_received', 'Unicast packets received, broken ones included.'],
  ['unicast_xmit_packets', 'unicast_packets_transmitted', 'Unicast packets sent, broken ones included.'],
  ['VL15_dropped', 'vl15_dropped', 'Management packets (VL15) dropped for want of room.'],
])

/** Files of `counters_ext`, in Linux before 4.5. */
export const oldPortCounters = table([
  [
    'port_multicast_rcv_packets',
    'legacy_multicast_packets_received',
    'Multicast packets received, from counters of old kernels.',
  ],
  [
    'port_multicast_xmit_packets',
    'legacy_multicast_packets_transmitted',
    'Multicast packets sent, from counters of old kernels.',
  ],
  [
    'port_rcv_data_64',
    'legacy_data_received_bytes',
    'Bytes received, from counters of old kernels.',
    wordBytes,
  ],
  ['port_rcv_packets_64', 'legacy_packets_received', 'Packets received, from counters of old kernels.'],
  [
    'port_unicast_rcv_packets',
    'legacy_unicast_packets_received',
    'Unicast packets received, from counters of old kernels.',
  ],
  [
    'port_unicast_xmit_packets',
    'legacy_unicast_packets_transmitted',
    'Unicast packets sent, from counters of old kernels.',
  ],
  [
    'port_xmit_data_64',
    'legacy_data_transmitted_bytes',
    'Bytes sent, from counters of old kernels.',
    wordBytes,
  ],
  ['port_xmit_packets_64', 'legacy_packets_transmitted', 'Packets sent, from counters of old kernels.'],
])

/** Selected files of `hw_counters` of mlx5 (Linux, drivers/infiniband/hw/mlx5/counters.c). */
export const errorCounters = table([
  ['duplicate_request', 'duplicate_requests_packets', 'Requests received a second time.'],
  [
    'implied_nak_seq_err',
    'implied_nak_seq_errors',
    'Acknowledgements whose number was beyond the expected one.',
  ],
  [
    'local_ack_timeout_err',
    'local_ack_timeout_errors',
    'Times that no acknowledgement came in time and another try was left.',
  ],
  ['np_cnp_sent', 'np_cnp_packets_sent', 'Congestion notifications sent.'],
  [
    'np_ecn_marked_roce_packets',
    'np_ecn_marked_roce_packets_received',
    'RoCE packets received that were marked for congestion.',
  ],
  ['out_of_buffer', 'out_of_buffer_drops', 'Packets dropped as no receive request was posted.'],
  ['out_of_sequence', 'out_of_sequence_packets_received', 'Packets received out of their order.'],
  [
    'packet_seq_err',
    'packet_sequence_errors',
    'Refusals received for a wrong order where another try was left.',
  ],
  ['req_cqe_error', 'req_cqes_errors', 'Completions with an error on the side that asks.'],
  ['req_cqe_flush_error', 'req_cqes_flush_errors', 'Completions that were flushed on the side that asks.'],
  [
    'req_remote_access_errors',
    'req_remote_access_errors',
    'Accesses that the other side refused to the side that asks.',
  ],
  [
    'req_remote_invalid_request',
    'req_remote_invalid_request_errors',
    'Requests that the other side found not valid.',
  ],
  ['resp_cqe_error', 'resp_cqes_errors', 'Completions with an error on the side that answers.'],
  [
    'resp_cqe_flush_error',
    'resp_cqes_flush_errors',
    'Completions that were flushed on the side that answers.',
  ],
  [
    'resp_local_length_error',
    'resp_local_length_errors',
    'Messages of a wrong length on the side that answers.',
  ],
  ['resp_remote_access_errors', 'resp_remote_access_errors', 'Accesses refused by the side that answers.'],
  [
    'rnr_nak_retry_err',
    'rnr_nak_retry_packets_received',
    'Refusals received as the other side was not ready, where another try was left.',
  ],
  ['roce_adp_retrans', 'roce_adp_retransmits', 'Adaptive retransmissions of RoCE.'],
  ['roce_adp_retrans_to', 'roce_adp_retransmits_timeout', 'Timeouts of RoCE by adaptive retransmission.'],
  ['roce_slow_restart', 'roce_slow_restart_used', 'Times that RoCE began again slowly.'],
  [
    'roce_slow_restart_cnps',
    'roce_slow_restart_cnps',
    'Congestion notifications that a slow restart of RoCE made.',
  ],
  ['roce_slow_restart_trans', 'roce_slow_restart', 'Changes of RoCE into the state of a slow restart.'],
  ['rp_cnp_handled', 'rp_cnp_packets_handled', 'Congestion notifications that made this side send less.'],
  ['rp_cnp_ignored', 'rp_cnp_ignored_packets_received', 'Congestion notifications received and not heeded.'],
  ['rx_atomic_requests', 'rx_atomic_requests', 'Atomic operations received.'],
  ['rx_dct_connect', 'rx_dct_connect_requests', 'Connections asked for at dynamically connected transports.'],
  ['rx_icrc_encapsulated', 'rx_icrc_encapsulated_errors', 'RoCE packets received with a wrong checksum.'],
  ['rx_read_requests', 'rx_read_requests', 'Reads received.'],
  ['rx_write_requests', 'rx_write_requests', 'Writes received.'],
])
