// Other calls of services: gRPC, databases, messages, name resolution; and their connections.
import type { Row } from './dashboard.ts'
import type { Panel } from './panel.ts'
import { lines } from './panel-kinds.ts'

const service = '$label=~"$service"'

/** Rate, failures and duration of one kind of call, by one label. */
function red(what: string, metric: string, by: string): readonly Panel[] {
  const total = `sum by (${by}) (rate(${metric}_seconds_count{${service}}[RATE]))`
  const failed = `sum by (${by}) (rate(${metric}_seconds_count{${service},error_type!=""}[RATE]))`
  const p95 = `histogram_quantile(0.95, sum by (le, ${by}) (rate(${metric}_seconds_bucket{${service}}[RATE])))`
  const legend = by
    .split(', ')
    .map(label => `{{${label}}}`)
    .join(' ')
  const look = { width: 8, min: 0 }
  return [
    lines(`${what}: rate`, 'Calls per second.', 'reqps', { [legend]: total }, look),
    lines(
      `${what}: errors`,
      'Share of failed calls.',
      'percentunit',
      { [legend]: `(${failed} or 0 * ${total}) / (${total} > 0)` },
      look,
    ),
    lines(`${what}: p95`, 'One call in twenty took longer.', 's', { [legend]: p95 }, look),
  ]
}

const folded = true
const peer = 'network_peer_address, server_port'
const tcp = (name: string, by = peer) => `sum by (${by}) (rate(svc_network_tcp_${name}{${service}}[RATE]))`
const tcpLook = { min: 0, width: 12 }

export const callRows: readonly Row[] = [
  {
    title: 'HTTP clients',
    folded,
    panels: red('HTTP clients', 'http_client_request_duration', 'server_address'),
  },
  {
    title: 'gRPC',
    folded,
    panels: [
      ...red('gRPC servers', 'rpc_server_call_duration', 'rpc_method'),
      ...red('gRPC clients', 'rpc_client_call_duration', 'rpc_method'),
    ],
  },
  {
    title: 'Databases and caches',
    folded,
    panels: red('Databases', 'db_client_operation_duration', 'db_system_name, db_operation_name'),
  },
  {
    title: 'Messages',
    folded,
    panels: [
      ...red('Messages', 'messaging_client_operation_duration', 'messaging_system, messaging_operation_name'),
      ...red('Deliveries', 'messaging_process_duration', 'messaging_system, messaging_destination_name'),
    ],
  },
  { title: 'DNS', folded, panels: red('Lookups', 'dns_lookup_duration', 'dns_question_name') },
  {
    title: 'Connections',
    folded,
    panels: [
      lines(
        'Bytes',
        'TCP payload by process.',
        'Bps',
        {
          '{{$label}} {{network_io_direction}}': `sum by ($label, network_io_direction) (rate(process_network_io_bytes_total{${service}}[RATE]))`,
        },
        { below: '.*transmit' },
      ),
      lines(
        'Connections',
        'Established connections, by peer and port.',
        'short',
        {
          '{{network_peer_address}}:{{server_port}}': `sum by (${peer}) (svc_network_tcp_connections{${service}})`,
        },
        tcpLook,
      ),
      lines(
        'New connections',
        'Connections established per second.',
        'cps',
        { '{{network_peer_address}}:{{server_port}}': tcp('connections_opened_total') },
        tcpLook,
      ),
      lines(
        'Failed connections',
        'Failed connection attempts, by peer and kind.',
        'cps',
        {
          '{{network_peer_address}}:{{server_port}} {{error_type}}': tcp(
            'connect_failures_total',
            `${peer}, error_type`,
          ),
        },
        tcpLook,
      ),
      lines(
        'Retransmitted segments',
        'TCP retransmissions by peer.',
        'pps',
        { '{{network_peer_address}}:{{server_port}}': tcp('retransmits_total') },
        tcpLook,
      ),
      lines(
        'Round-trip times',
        '95th percentile, by peer.',
        's',
        {
          '{{network_peer_address}}': `histogram_quantile(0.95, ${tcp('rtt_seconds_bucket', 'le, network_peer_address')})`,
        },
        tcpLook,
      ),
    ],
  },
]
