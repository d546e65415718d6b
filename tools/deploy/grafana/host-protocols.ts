// Sockets and protocols of the network; and the collectors that read all of this.
import type { Row } from './dashboard.ts'
import type { Look, Panel } from './panel.ts'
import { lines } from './panel-kinds.ts'

/** Counters of /proc/net/netstat and snmp by their own names. */
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
    sockets('Sockstat TCP', 'Sockets of TCP by what they do.', 'short', [
      'TCP_alloc',
      'TCP_inuse',
      'TCP_orphan',
      'TCP_tw',
    ]),
    sockets('Sockstat UDP', 'Sockets of UDP.', 'short', ['UDP_inuse', 'UDPLITE_inuse']),
    sockets('Sockstat FRAG / RAW', 'Packets that are put together, and raw sockets.', 'short', [
      'FRAG_inuse',
      'RAW_inuse',
    ]),
    sockets('Sockstat Memory Size', 'Memory that the kernel has for sockets.', 'bytes', [
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
    netstat(
      'TCP Errors',
      'What went wrong with TCP: queues that were full, segments that were sent again, resets.',
      'pps',
      [
        ...['TcpExt_ListenOverflows', 'TcpExt_ListenDrops', 'TcpExt_TCPSynRetrans', 'TcpExt_TCPTimeouts'],
        ...['TcpExt_TCPRcvQDrop', 'Tcp_RetransSegs', 'Tcp_InErrs', 'Tcp_OutRsts'],
      ],
    ),
    netstat('UDP Errors', 'Datagrams without a listener, or without room.', 'pps', [
      'Udp_InErrors',
      'Udp_NoPorts',
      'Udp_RcvbufErrors',
      'Udp_SndbufErrors',
    ]),
    lines(
      'TCP Connections',
      'Connections that are established.',
      'short',
      { Established: 'node_netstat_Tcp_CurrEstab{HOST}' },
      { min: 0 },
    ),
    netstat('TCP Direct Transition', 'Connections that this host began, and that it took.', 'ops', [
      'Tcp_ActiveOpens',
      'Tcp_PassiveOpens',
    ]),
    netstat('TCP SynCookie', 'Cookies that were sent because a queue was full.', 'pps', [
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
      'Time that each collector took.',
      's',
      { '{{collector}}': 'node_scrape_collector_duration_seconds{HOST}' },
      { min: 0 },
    ),
    lines(
      'Node Exporter Scrape',
      '0 where a collector failed, or has nothing to read.',
      'short',
      { '{{collector}}': 'node_scrape_collector_success{HOST}' },
      { min: 0, max: 1 },
    ),
  ],
}

export const protocolRows: readonly Row[] = [sockstat, protocols, exporter]
