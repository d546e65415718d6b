import { bytesOrNoData } from './_missing-file.ts'
import { atLeast, exactly, parseRpc, procedures2, procedures3 } from './_nfs-rpc.ts'
import { collector, counter } from './collector.ts'

const packets = counter('nfs_packets_total', 'Packets of the NFS client, by transport.', {
  labels: ['protocol'],
  otel: {
    name: 'nfs.client.net.count',
    unit: '{record}',
    kind: 'counter',
    attributes: { protocol: 'network.transport' },
  },
})
const connections = counter('nfs_connections_total', 'TCP connections of the NFS client.', {
  otel: { name: 'nfs.client.net.tcp.connection.accepted', unit: '{connection}', kind: 'counter' },
})
const calls = counter('nfs_rpcs_total', 'Remote procedure calls that the NFS client made.', {
  otel: { name: 'nfs.client.rpc.count', unit: '{request}', kind: 'counter' },
})
const retransmissions = counter('nfs_rpc_retransmissions_total', 'Calls that the NFS client sent again.', {
  otel: { name: 'nfs.client.rpc.retransmit.count', unit: '{retransmit}', kind: 'counter' },
})
const refreshes = counter(
  'nfs_rpc_authentication_refreshes_total',
  'Times that the NFS client renewed its credentials.',
  { otel: { name: 'nfs.client.rpc.authrefresh.count', unit: '{authrefresh}', kind: 'counter' } },
)
const requestsName = 'nfs_requests_total'
const requestsHelp = 'Requests of the NFS client, by version and procedure.'
const requests = counter(requestsName, requestsHelp, {
  labels: ['method', 'proto'],
  otel: {
    name: 'nfs.client.procedure.count',
    unit: '{procedure}',
    kind: 'counter',
    attributes: { method: 'onc_rpc.procedure.name', proto: 'onc_rpc.version' },
  },
})
/** The same for the Prometheus page; version 4 has operations instead of procedures. */
const operations = counter(requestsName, requestsHelp, {
  labels: ['method', 'proto'],
  otel: {
    name: 'nfs.client.operation.count',
    unit: '{operation}',
    kind: 'counter',
    attributes: { method: 'nfs.operation.name', proto: 'onc_rpc.version' },
  },
})

/**
 * Operations of the client for NFS version 4, in the order of the replaced exporter (Linux, include/linux/nfs4.h, has
 * LayoutGet before GetDeviceInfo).
 */
const operations4 = [
  'Null Read Write Commit Open OpenConfirm OpenNoattr OpenDowngrade Close Setattr FsInfo Renew SetClientID',
  'SetClientIDConfirm Lock Lockt Locku Access Getattr Lookup LookupRoot Remove Rename Link Symlink Create Pathconf',
  'StatFs ReadLink ReadDir ServerCaps DelegReturn GetACL SetACL FsLocations ReleaseLockowner Secinfo FsidPresent',
  'ExchangeID CreateSession DestroySession Sequence GetLeaseTime ReclaimComplete GetDeviceInfo LayoutGet LayoutCommit',
  'LayoutReturn SecinfoNoName TestStateID FreeStateID GetDeviceList BindConnToSession DestroyClientID Seek Allocate',
  'DeAllocate LayoutStats Clone',
].flatMap(names => names.split(' '))

const versions = [
  ['2', 'proc2', procedures2],
  ['3', 'proc3', procedures3],
  ['4', 'proc4', operations4],
] as const

const shapes = {
  net: exactly(4),
  rpc: exactly(3),
  proc2: atLeast(procedures2.length),
  proc3: atLeast(procedures3.length),
  // Older kernels have fewer operations.
  proc4: atLeast(0),
}

/** Requests of the NFS client of this host, from /proc/net/rpc/nfs. */
export const nfs = collector({
  name: 'nfs',
  summary: 'Requests of the NFS client',
  source: '/proc/net/rpc/nfs',
  enabledByDefault: true,
  metrics: [packets, connections, calls, retransmissions, refreshes, requests, operations],
  start: (_options, { host }) => ({
    collect(readings) {
      const bytes = bytesOrNoData(host.proc, 'net/rpc/nfs', 'the NFS client is not running')
      const lines = parseRpc(bytes, '/proc/net/rpc/nfs', shapes)
      const net = lines.get('net') ?? []
      readings.set(packets, net[1] ?? 0, 'udp')
      readings.set(packets, net[2] ?? 0, 'tcp')
      readings.set(connections, net[3] ?? 0)
      const rpc = lines.get('rpc') ?? []
      readings.set(calls, rpc[0] ?? 0)
      readings.set(retransmissions, rpc[1] ?? 0)
      readings.set(refreshes, rpc[2] ?? 0)
      for (const [version, line, methods] of versions) {
        const counts = lines.get(line) ?? []
        methods.forEach((method, i) => {
          readings.set(version === '4' ? operations : requests, counts[i] ?? 0, method, version)
        })
      }
    },
  }),
})
