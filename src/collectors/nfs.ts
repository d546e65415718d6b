import { bytesOrNoData } from './_missing-file.ts'
import { atLeast, exactly, parseRpc, procedures2, procedures3 } from './_nfs-rpc.ts'
import { collector, counter } from './collector.ts'

const packets = counter('nfs_packets_total', 'Packets of the NFS client, by transport.', {
  labels: ['protocol'],
})
const connections = counter('nfs_connections_total', 'TCP connections of the NFS client.')
const calls = counter('nfs_rpcs_total', 'Remote procedure calls that the NFS client made.')
const retransmissions = counter('nfs_rpc_retransmissions_total', 'Calls that the NFS client sent again.')
const refreshes = counter(
  'nfs_rpc_authentication_refreshes_total',
  'Times that the NFS client renewed its credentials.',
)
const requests = counter('nfs_requests_total', 'Requests of the NFS client, by version and procedure.', {
  labels: ['method', 'proto'],
})

/**
 * Operations of the client for NFS version 4, as the replaced exporter orders them (Linux, include/linux/nfs4.h, has
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
  // Older kernels know fewer operations.
  proc4: atLeast(0),
}

/** What the NFS client of this host asked, from /proc/net/rpc/nfs. */
export const nfs = collector({
  name: 'nfs',
  summary: 'Requests of the NFS client',
  enabledByDefault: true,
  metrics: [packets, connections, calls, retransmissions, refreshes, requests],
  start: (_options, { host }) => ({
    collect(readings) {
      const bytes = bytesOrNoData(host.proc, 'net/rpc/nfs', 'no NFS client runs')
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
          readings.set(requests, counts[i] ?? 0, method, version)
        })
      }
    },
  }),
})
