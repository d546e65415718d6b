// Sockets and network protocols; and the collectors that read all of this.
import type { Row } from './dashboard.ts'
import type { Look, Panel } from './panel.ts'
import { lines } from './panel-kinds.ts'

/** Counters of /proc/net/netstat and snmp, with their original names. */
function netstat(
  title: string,
  description: string,
  unit: string,
  fields: readonly string[],
  look: Look = {},
): Panel {
  const queries = fields.map(field => [field, `rate(node_netstat_${field}{HOST}[RATE])`])
  return lines(title, description, unit, Object.fromEntries(queries), look)
}

function sockets(title: string, description: string, unit: string, names: readonly string[]): Panel {
  const queries = names.map(name => [name, `node_sockstat_${name}{HOST}`])
  return lines(title, description, unit, Object.fromEntries(queries), { min: 0 })
}

const sockstat: Row = {
  title: 'Network Sockstat',
  folded: true,
  panels: [
    sockets('Sockstat TCP', 'TCP sockets by state.', 'short', [
      'TCP_alloc',
      'TCP_inuse',
      'TCP_orphan',
      'TCP_tw',
    ]),
    sockets('Sockstat UDP', 'Sockets of UDP.', 'short', ['UDP_inuse', 'UDPLITE_inuse']),
    sockets('Sockstat FRAG / RAW', 'Packets being reassembled, and raw sockets.', 'short', [
      'FRAG_inuse',
      'RAW_inuse',
    ]),
    sockets('Sockstat Memory Size', 'Kernel memory for sockets.', 'bytes', [
      'TCP_mem_bytes',
      'UDP_mem_bytes',
      'FRAG_memory',
    ]),
    sockets('Sockets Used', 'Sockets of all kinds.', 'short', ['sockets_used']),
  ],
}

const protocols: Row = {
  title: 'Network Netstat',
  folded: true,
  panels: [
    netstat('Netstat IP In / Out Octets', 'Bytes of IP.', 'Bps', ['IpExt_InOctets', 'IpExt_OutOctets'], {
      below: '.*Out.*',
    }),
    netstat('TCP In / Out', 'Segments of TCP.', 'pps', ['Tcp_InSegs', 'Tcp_OutSegs'], { below: '.*Out.*' }),
    netstat('ICMP In / Out', 'Messages of ICMP.', 'pps', ['Icmp_InMsgs', 'Icmp_OutMsgs'], {
      below: '.*Out.*',
    }),
    netstat('UDP In / Out', 'Datagrams.', 'pps', ['Udp_InDatagrams', 'Udp_OutDatagrams'], {
      below: '.*Out.*',
    }),
    netstat('TCP Errors', 'TCP errors: full queues, retransmitted segments, resets.', 'pps', [
      ...['TcpExt_ListenOverflows', 'TcpExt_ListenDrops', 'TcpExt_TCPSynRetrans', 'TcpExt_TCPTimeouts'],
      ...['TcpExt_TCPRcvQDrop', 'Tcp_RetransSegs', 'Tcp_InErrs', 'Tcp_OutRsts'],
    ]),
    netstat('UDP Errors', 'Datagrams without a listener, or without room.', 'pps', [
      'Udp_InErrors',
      'Udp_NoPorts',
      'Udp_RcvbufErrors',
      'Udp_SndbufErrors',
    ]),
    lines(
      'TCP Connections',
      'Established connections.',
      'short',
      { Established: 'node_netstat_Tcp_CurrEstab{HOST}' },
      { min: 0 },
    ),
    netstat('TCP Direct Transition', 'Connections that this host opened, and that it accepted.', 'ops', [
      'Tcp_ActiveOpens',
      'Tcp_PassiveOpens',
    ]),
    netstat('TCP SynCookie', 'Cookies sent because a queue was full.', 'pps', [
      'TcpExt_SyncookiesSent',
      'TcpExt_SyncookiesRecv',
      'TcpExt_SyncookiesFailed',
    ]),
    lines(
      'TCP Stat',
      'Sockets by state. Needs the collector tcpstat.',
      'short',
      { '{{state}}': 'node_tcp_connection_states{HOST}' },
      { min: 0 },
    ),
  ],
}

const exporter: Row = {
  title: 'Node Exporter',
  folded: true,
  panels: [
    lines(
      'Node Exporter Scrape Time',
      'Duration of each collector.',
      's',
      { '{{collector}}': 'node_scrape_collector_duration_seconds{HOST}' },
      { min: 0 },
    ),
    lines(
      'Node Exporter Scrape',
      '0 if a collector failed, or has no data.',
      'short',
      { '{{collector}}': 'node_scrape_collector_success{HOST}' },
      { min: 0, max: 1 },
    ),
  ],
}

export const protocolRows: readonly Row[] = [sockstat, protocols, exporter]
