import { collector, counter, type Family, gauge, type Readings } from './collector.ts'

const mountLabels = { labels: ['export', 'mountaddr', 'protocol'] }
const operationLabels = { labels: ['export', 'mountaddr', 'operation', 'protocol'] }
const transportLabels = { labels: ['export', 'mountaddr', 'protocol', 'transport'] }

function mountCounter(name: string, help: string): Family {
  return counter(`mountstats_nfs_${name}_total`, help, mountLabels)
}

const info = gauge('mountstats_nfs_mountpoint_info', 'Where an NFS export is mounted; always 1.', {
  labels: ['export', 'mountaddr', 'mountpoint', 'protocol'],
})
const age = mountCounter('age_seconds', 'Time since the export was mounted.')

/** Numbers of the line `bytes:`, in its order. */
const byteCounters = [
  mountCounter('read_bytes', 'Bytes that programs read by read(2).'),
  mountCounter('write_bytes', 'Bytes that programs wrote by write(2).'),
  mountCounter('direct_read_bytes', 'Bytes that programs read past the cache (O_DIRECT).'),
  mountCounter('direct_write_bytes', 'Bytes that programs wrote past the cache (O_DIRECT).'),
  mountCounter('total_read_bytes', 'Bytes that came from the server.'),
  mountCounter('total_write_bytes', 'Bytes that went to the server.'),
  mountCounter('read_pages', 'Pages that were read for mappings of files.'),
  mountCounter('write_pages', 'Pages that were written for mappings of files.'),
]

/** Numbers of the line `events:`, in its order. */
const eventCounters = [
  ['inode_revalidate', 'Times that kept attributes of an inode were checked with the server.'],
  ['dnode_revalidate', 'Times that kept directory entries were checked with the server.'],
  ['data_invalidate', 'Times that the kept content of an inode was thrown away.'],
  ['attribute_invalidate', 'Times that kept attributes of an inode were thrown away.'],
  ['vfs_open', 'Files and directories opened.'],
  ['vfs_lookup', 'Names looked up in directories.'],
  ['vfs_access', 'Checks of permissions.'],
  ['vfs_update_page', 'Pages changed.'],
  ['vfs_read_page', 'Pages read one by one.'],
  ['vfs_read_pages', 'Groups of pages read.'],
  ['vfs_write_page', 'Pages written one by one.'],
  ['vfs_write_pages', 'Groups of pages written.'],
  ['vfs_getdents', 'Reads of directory entries.'],
  ['vfs_setattr', 'Changes of attributes.'],
  ['vfs_flush', 'Times that waiting writes were sent off, as by close(2).'],
  ['vfs_fsync', 'Calls of fsync(2).'],
  ['vfs_lock', 'Attempts to lock a file.'],
  ['vfs_file_release', 'Files closed for good.'],
  undefined,
  ['truncation', 'Files cut.'],
  ['write_extension', 'Files made longer by a write beyond their end.'],
  ['silly_rename', 'Removed files that were renamed as somebody had them open.'],
  ['short_read', 'Reads that gave less than was asked for.'],
  ['short_write', 'Writes that took less than was given.'],
  ['jukebox_delay', 'Times that the server asked for patience (EJUKEBOX).'],
  ['pnfs_read', 'Reads over pNFS.'],
  ['pnfs_write', 'Writes over pNFS.'],
].map(event => event && mountCounter(`event_${event[0]}`, event[1]!))

/** Numbers of a line of an operation, in order, with their factors to the family's unit. */
const operationCounters = [
  ['requests', 'Requests made, by operation.', 1],
  ['transmissions', 'Requests sent, again or for the first time, by operation.', 1],
  ['major_timeouts', 'Requests that ran into a major timeout, by operation.', 1],
  ['sent_bytes', 'Bytes sent, with headers, by operation.', 1],
  ['received_bytes', 'Bytes received, with headers, by operation.', 1],
  ['queue_time_seconds', 'Time that requests waited to be sent, by operation.', 1000],
  ['response_time_seconds', 'Time from sending to the reply, by operation.', 1000],
  ['request_time_seconds', 'Time from the queue to the end of the request, by operation.', 1000],
].map(([name, help, divisor]) => ({
  family: counter(`mountstats_nfs_operations_${name}_total`, String(help), operationLabels),
  divisor: Number(divisor),
}))

/** Numbers of the line `xprt: tcp`, in its order. */
const transportFamilies = [
  undefined,
  ['bind_total', 'Connections set up from nothing.'],
  ['connect_total', 'TCP connections made.'],
  undefined,
  ['idle_time_seconds', 'Time since the last traffic.'],
  ['sends_total', 'Requests sent.'],
  ['receives_total', 'Replies received.'],
  ['bad_transaction_ids_total', 'Replies to no known request.'],
  undefined,
  ['backlog_queue_total', 'Sum of the lengths of the backlog, taken at each request.'],
  ['maximum_rpc_slots', 'Most requests that were under way at once.'],
  ['sending_queue_total', 'Sum of the lengths of the queue for sending, taken at each request.'],
  ['pending_queue_total', 'Sum of the lengths of the queue for replies, taken at each request.'],
].map(field =>
  field === undefined
    ? undefined
    : field[0]!.endsWith('_total')
      ? counter(`mountstats_nfs_transport_${field[0]}`, field[1]!, transportLabels)
      : gauge(`mountstats_nfs_transport_${field[0]}`, field[1]!, transportLabels),
)

/** Requests of each NFS mount, from /proc/self/mountstats (Linux, fs/nfs/super.c, net/sunrpc/stats.c). */
export const mountstats = collector({
  name: 'mountstats',
  summary: 'Requests by NFS mount',
  source: '/proc/self/mountstats',
  enabledByDefault: false,
  metrics: [
    info,
    age,
    ...byteCounters,
    ...eventCounters,
    ...transportFamilies,
    ...operationCounters.map(o => o.family),
  ].filter(family => family !== undefined),
  start: (_options, { host }) => ({
    collect(readings) {
      const mounts = parseMountstats(host.proc.text('self/mountstats'))
      const addresses = serverAddresses(host.proc.text('self/mountinfo'))
      const shownPoints = new Set<string>()
      const shownExports = new Set<string>()
      mounts.forEach((mount, i) => {
        if (mount === undefined) return
        // Both files list the same mounts in the same order.
        const address = addresses[i] ?? ''
        for (const { protocol } of mount.transports) {
          const labels = [mount.device, address, protocol]
          const point = [mount.device, address, mount.point, protocol]
          if (isNew(shownPoints, point)) readings.setAll(info, 1, point)
          // Mounts of one export share their counters.
          if (!isNew(shownExports, labels)) break
          show(mount, labels, readings)
        }
      })
    },
  }),
})

function isNew(known: Set<string>, labels: readonly string[]): boolean {
  const name = labels.join(' ')
  return !known.has(name) && known.add(name) !== undefined
}

function show(mount: NfsMount, labels: readonly string[], readings: Readings): void {
  const [device = '', address = '', protocol = ''] = labels
  readings.setAll(age, mount.ageSeconds, labels)
  byteCounters.forEach((family, i) => {
    readings.setAll(family, mount.bytes[i] ?? 0, labels)
  })
  eventCounters.forEach((family, i) => {
    if (family !== undefined) readings.setAll(family, mount.events[i] ?? 0, labels)
  })
  mount.transports.forEach(({ numbers }, index) => {
    transportFamilies.forEach((family, i) => {
      if (family !== undefined)
        readings.setAll(family, numbers[i] ?? 0, [device, address, protocol, String(index)])
    })
  })
  for (const { name, numbers } of mount.operations)
    operationCounters.forEach(({ family, divisor }, i) => {
      readings.setAll(family, numbers[i]! / divisor, [device, address, name, protocol])
    })
}

interface Transport {
  readonly protocol: string
  /** In the order of `transportFamilies`. */
  readonly numbers: readonly number[]
}

interface NfsMount {
  readonly device: string
  readonly point: string
  readonly version: string
  ageSeconds: number
  bytes: readonly number[]
  events: readonly number[]
  readonly transports: Transport[]
  readonly operations: { readonly name: string; readonly numbers: readonly number[] }[]
}

/** All mounts in order; undefined for those without NFS statistics. */
function parseMountstats(text: string): readonly (NfsMount | undefined)[] {
  const mounts: (NfsMount | undefined)[] = []
  let mount: NfsMount | undefined
  let inOperations = false
  for (const line of text.split('\n')) {
    const words = line.trim().split(/[ \t]+/)
    const [first = '', ...rest] = words
    if (first === 'device' || (first === 'no' && rest[0] === 'device')) {
      mount = parseMount(words)
      mounts.push(mount)
      inOperations = false
    } else if (mount === undefined) continue
    else if (first === '') mount = undefined
    else if (inOperations)
      mount.operations.push({ name: first.replace(/:$/, ''), numbers: numbers(rest, 8, 5, 8) })
    else if (first === 'age:') mount.ageSeconds = numbers(rest, 1)[0]!
    else if (first === 'bytes:') mount.bytes = numbers(rest, byteCounters.length)
    else if (first === 'events:') mount.events = numbers(rest, eventCounters.length)
    else if (first === 'xprt:') mount.transports.push(parseTransport(rest, mount.version))
    else if (first === 'per-op') inOperations = true
  }
  if (mounts.length === 0) throw broken('no mounts found')
  return mounts
}

/** `device D mounted on P with fstype T`, followed by `statvers=V` if it has statistics. */
function parseMount(words: readonly string[]): NfsMount | undefined {
  const [, device = '', mounted, on, point = '', , , type, version = ''] = words
  if (words[0] === 'no') return undefined
  if (mounted !== 'mounted' || on !== 'on' || type === undefined) throw broken('a line has no mount')
  if (version === '') return undefined
  if (type !== 'nfs' && type !== 'nfs4') throw broken(`${type} has statistics that are not NFS statistics`)
  return {
    device,
    point,
    version: version.replace('statvers=', ''),
    ageSeconds: 0,
    bytes: [],
    events: [],
    transports: [],
    operations: [],
  }
}

/** Number of values of a transport, by version of the statistics. */
const transportLengths: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  '1.0': { tcp: 10, udp: 7 },
  '1.1': { tcp: 13, udp: 10, rdma: 20 },
}

function parseTransport([protocol = '', ...words]: readonly string[], version: string): Transport {
  const length = transportLengths[version]?.[protocol]
  if (length === undefined) throw broken(`unknown transport ${protocol} in version ${version}`)
  const all = numbers(words, length, 4, protocol === 'udp' ? 0 : 5)
  if (words.length > length && protocol !== 'rdma') throw broken(`transport ${protocol} has too many numbers`)
  // UDP has no connections, so it lacks their values; the first ten values of RDMA are those of TCP.
  if (protocol === 'udp') return { protocol, numbers: [...all.slice(0, 2), 0, 0, 0, ...all.slice(2)] }
  return { protocol, numbers: protocol === 'rdma' ? all.slice(0, 10) : all }
}

/** Numbers of a line; throws if there are fewer. Those from index `timesFrom` up to `timesTo` are times. */
function numbers(words: readonly string[], atLeast: number, timesFrom = 0, timesTo = 0): readonly number[] {
  if (words.length < atLeast || !words.every(word => /^\d{1,20}$/.test(word)))
    throw broken(`a line does not have ${atLeast} numbers`)
  return words.map((word, i) => (i >= timesFrom && i < timesTo ? time(word) : Number(word)))
}

/** A time: the kernel sums clock differences, which may be negative and wrap the sum, so 53 bits are shown. */
function time(word: string): number {
  return Number(BigInt.asUintN(53, BigInt(word)))
}

/** Option `addr` of each mount (proc(5), mountinfo); '' if missing. */
function serverAddresses(text: string): readonly string[] {
  return text.split('\n').map(line => /[, ]addr=([^,\s]*)/.exec(line.slice(line.indexOf(' - ')))?.[1] ?? '')
}

function broken(why: string): Error {
  return new Error(`cannot read /proc/self/mountstats: ${why}`)
}
