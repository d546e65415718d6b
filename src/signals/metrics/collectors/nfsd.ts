import type { FamilyOptions } from '../../../foundation/model/collector.ts'
import { bytesOrNoData } from './_missing-file.ts'
import { atLeast, exactly, parseRpc, procedures2, procedures3 } from './_nfs-rpc.ts'
import { collector, counter, type Family, gauge } from './collector.ts'

const packets = counter('nfsd_packets_total', 'Packets of the NFS server, by transport.', {
  labels: ['proto'],
  otel: {
    name: 'nfs.server.net.count',
    unit: '{record}',
    kind: 'counter',
    attributes: { proto: 'network.transport' },
  },
})
const errors = counter('nfsd_rpc_errors_total', 'Calls that the NFS server refused, by cause.', {
  labels: ['error'],
  otel: {
    name: 'nfs.server.rpc.count',
    unit: '{request}',
    kind: 'counter',
    attributes: { error: 'error.type' },
    values: { fmt: 'format', cInt: 'client' },
  },
})
const requestsName = 'nfsd_requests_total'
const requestsHelp = 'Requests to the NFS server, by version and procedure.'
const requests = counter(requestsName, requestsHelp, {
  labels: ['method', 'proto'],
  otel: {
    name: 'nfs.server.procedure.count',
    unit: '{procedure}',
    kind: 'counter',
    attributes: { method: 'onc_rpc.procedure.name', proto: 'onc_rpc.version' },
  },
})
/** The same for the Prometheus page; version 4 has operations instead of procedures. */
const operations = counter(requestsName, requestsHelp, {
  labels: ['method', 'proto'],
  otel: {
    name: 'nfs.server.operation.count',
    unit: '{operation}',
    kind: 'counter',
    attributes: { method: 'nfs.operation.name', proto: 'onc_rpc.version' },
  },
})

function cache(status: string): FamilyOptions {
  const constant = { 'nfs.server.repcache.status': status }
  return { otel: { name: 'nfs.server.repcache.requests', unit: '{request}', kind: 'counter', constant } }
}

/** Options by direction; in the conventions, bytes of reads are received, those of writes transmitted. */
function transfer(direction: 'receive' | 'transmit'): FamilyOptions {
  const constant = { 'network.io.direction': direction }
  return { unit: 'By', otel: { name: 'nfs.server.io', unit: 'By', kind: 'counter', constant } }
}

/** Shown values of a line: index, family, and label value if any. */
const values: readonly (readonly [line: string, place: number, family: Family, label?: string])[] = [
  [
    'rc',
    0,
    counter(
      'nfsd_reply_cache_hits_total',
      'Requests that came again and had their reply in the cache.',
      cache('hit'),
    ),
  ],
  [
    'rc',
    1,
    counter('nfsd_reply_cache_misses_total', 'Requests whose reply the cache was to keep.', cache('miss')),
  ],
  [
    'rc',
    2,
    counter('nfsd_reply_cache_nocache_total', 'Requests whose reply needs no cache.', cache('nocache')),
  ],
  [
    'fh',
    0,
    counter('nfsd_file_handles_stale_total', 'Requests with a file handle that leads nowhere any more.', {
      otel: { name: 'nfs.server.fh.stale.count', unit: '{fh}', kind: 'counter' },
    }),
  ],
  [
    'io',
    0,
    counter('nfsd_disk_bytes_read_total', 'Bytes that the NFS server read from disks.', transfer('receive')),
  ],
  [
    'io',
    1,
    counter(
      'nfsd_disk_bytes_written_total',
      'Bytes that the NFS server wrote to disks.',
      transfer('transmit'),
    ),
  ],
  [
    'th',
    0,
    gauge('nfsd_server_threads', 'Threads of the NFS server in the kernel.', {
      otel: { name: 'nfs.server.thread.count', unit: '{thread}', kind: 'updowncounter' },
    }),
  ],
  ['ra', 0, gauge('nfsd_read_ahead_cache_size_blocks', 'Blocks that the cache of reading ahead can hold.')],
  [
    'ra',
    11,
    counter('nfsd_read_ahead_cache_not_found_total', 'Look-ups that the cache of reading ahead failed.'),
  ],
  ['net', 1, packets, 'udp'],
  ['net', 2, packets, 'tcp'],
  [
    'net',
    3,
    counter('nfsd_connections_total', 'TCP connections to the NFS server.', {
      otel: { name: 'nfs.server.net.tcp.connection.accepted', unit: '{connection}', kind: 'counter' },
    }),
  ],
  [
    'rpc',
    0,
    counter('nfsd_server_rpcs_total', 'Remote procedure calls to the NFS server.', {
      otel: { name: 'nfs.server.rpc.count', unit: '{request}', kind: 'counter' },
    }),
  ],
  ['rpc', 2, errors, 'fmt'],
  ['rpc', 3, errors, 'auth'],
  ['rpc', 4, errors, 'cInt'],
]

/** Operations of NFS version 4 by number (RFC 7530, section 15); those of '-' are not shown. */
const operations4 = [
  '- - - Access Close Commit Create DelegPurge DelegReturn GetAttr GetFH Link Lock Lockt Locku Lookup LookupRoot',
  'Nverify Open OpenAttr OpenConfirm OpenDgrd PutFH - - Read ReadDir ReadLink Remove Rename Renew RestoreFH SaveFH',
  'SecInfo SetAttr SetClientID SetClientIDConfirm Verify Write RelLockOwner',
].flatMap(names => names.split(' '))

const hidden: ReadonlySet<string> = new Set(['-', 'Null'])

const versions = [
  ['2', 'proc2', procedures2],
  ['3', 'proc3', procedures3],
  ['4', 'proc4ops', operations4],
  ['4', 'wdeleg_getattr', ['WdelegGetattr']],
] as const

const shapes = {
  rc: exactly(3),
  fh: exactly(5),
  io: exactly(2),
  // Threads, a count that is always 0, and a histogram that newer kernels omit.
  th: atLeast(2),
  ra: exactly(12),
  net: exactly(4),
  rpc: exactly(5),
  proc2: atLeast(procedures2.length),
  proc3: atLeast(procedures3.length),
  proc4: exactly(2),
  // Without RelLockOwner in Linux before 2.6.
  proc4ops: atLeast(operations4.length - 1),
  wdeleg_getattr: exactly(1),
}

/** Requests to the NFS server of this host, from /proc/net/rpc/nfsd. */
export const nfsd = collector({
  name: 'nfsd',
  summary: 'Requests to the NFS server',
  source: '/proc/net/rpc/nfsd',
  enabledByDefault: true,
  metrics: [...new Set([...values.map(([, , family]) => family), requests, operations])],
  start: (_options, { host }) => ({
    collect(readings) {
      const bytes = bytesOrNoData(host.proc, 'net/rpc/nfsd', 'the NFS server is not running')
      const lines = parseRpc(bytes, '/proc/net/rpc/nfsd', shapes)
      for (const [line, place, family, label] of values)
        readings.set(family, lines.get(line)?.[place] ?? 0, label)
      for (const [version, line, methods] of versions) {
        const counts = lines.get(line) ?? []
        methods.forEach((method, i) => {
          if (!hidden.has(method))
            readings.set(version === '4' ? operations : requests, counts[i] ?? 0, method, version)
        })
      }
    },
  }),
})
