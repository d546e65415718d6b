import { readFileSync } from 'node:fs'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'
import { family } from '../../../foundation/model/collector.ts'
import { findAsset } from '../../../kernel/assets.ts'
import { BpfObject } from '../../../kernel/bpf-object.ts'
import { bss, rodata, svcProcess } from '../../../kernel/gen/host.ts'
import { readIterator } from '../../../kernel/iterator.ts'
import { type LinkHandle, loadNative, type Native, Unsupported } from '../../../kernel/native.ts'
import { type NotLoaded, whyNotLoaded } from '../../../kernel/why-not-loaded.ts'
import { collector, counter, gauge, NoData, type Reader } from './collector.ts'

const rtt = family(
  'histogram',
  'tcp_rtt_microseconds',
  'Smoothed round-trip times of TCP connections: of each when it ends, and while it is open at most every 10 seconds.',
)
const retransmits = counter(
  'tcp_retransmits_total',
  'Retransmissions of TCP since the agent started; one may be of several segments.',
)
const openFds = gauge(
  'process_open_fds',
  'Open files of processes of one name; `other` are all beyond the 50 with most.',
  {
    labels: ['comm'],
  },
)

/** Upper bounds in microseconds. */
const bounds = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1e6]
/** Maximum names with their own series. */
const mostNames = 50
/** Minimum interval of reading open connections, in milliseconds: it takes 0.2 µs each. */
const connectionsMs = 10_000
/** Bytes for some 50,000 processes; more are not counted. */
const mostBytes = 1024 * 1024

/** Counts available only in the kernel, by BPF programs (bpf/host.bpf.c). Not in the replaced exporter. */
export const ebpf = collector({
  name: 'ebpf',
  summary: 'Round-trip times and retransmissions of TCP, and open files by process name',
  source: 'BPF programs',
  enabledByDefault: true,
  metrics: [rtt, retransmits, openFds],
  start: (_options, { withoutEbpf }) => {
    if (withoutEbpf !== undefined) return nothing(new NoData(`no eBPF metrics: ${withoutEbpf}`))
    const loaded = load()
    return 'reason' in loaded ? { ...nothing(new NoData(loaded.reason)), failure: loaded } : reader(loaded)
  },
})

function nothing(why: NoData): Reader {
  return {
    collect() {
      throw why
    },
  }
}

interface Loaded {
  readonly native: Native
  readonly object: BpfObject
  readonly connections: LinkHandle
  readonly processes: LinkHandle
  /** Variables of the programs. */
  readonly counted: Float64ArrayLike
}

/** Numbers of 64 bits at offsets in bytes. */
interface Float64ArrayLike {
  at(offset: number): number
}

function load(): Loaded | NotLoaded {
  const native = loadNative()
  if (native instanceof Unsupported) return native
  const path = findAsset('host.bpf.o')
  if (path === undefined) return { reason: 'host.bpf.o not found', hint: 'reinstall the package' }
  let object: BpfObject | undefined
  try {
    object = BpfObject.load(native, readFileSync(path), {
      name: 'host',
      prepare: handle =>
        native.objectSetData(
          handle,
          '.rodata',
          rodata.rttBounds,
          new Uint8Array(BigUint64Array.from(bounds.map(BigInt)).buffer),
        ),
    })
    object.attach('svc_host_destroy')
    object.attach('svc_host_retransmit')
    const connections = object.attach('svc_host_connections')
    const processes = object.attach('svc_host_processes')
    const view = new DataView(native.mapView(object.map('.bss')))
    const counted = { at: (offset: number) => Number(view.getBigUint64(offset, true)) }
    return { native, object, connections, processes, counted }
  } catch (error) {
    object?.close()
    return whyNotLoaded(error)
  }
}

function reader({ native, object, connections, processes, counted }: Loaded): Reader {
  let lookedAt = Number.NEGATIVE_INFINITY
  return {
    collect(readings) {
      const now = performance.now()
      if (now - lookedAt >= connectionsMs) {
        lookedAt = now
        readIterator(native, connections, 4096)
      }
      const parts: [number, number][] = []
      let count = 0
      for (const [i, bound] of bounds.entries()) {
        count += counted.at(bss.rttBuckets + 8 * i)
        parts.push([bound, count])
      }
      count += counted.at(bss.rttBuckets + 8 * bounds.length)
      readings.setDistribution(rtt, { parts, sum: counted.at(bss.rttSum), count }, [])
      readings.set(retransmits, counted.at(bss.retransmits))
      const { bytes } = readIterator(native, processes, mostBytes)
      for (const [name, files] of mostOpen(bytes)) readings.set(openFds, files, name)
    },
    close: () => object.close(),
  }
}

/** Open files by process name: the names with the most, and `other` for the rest. `bytes` are `svc_process` records. */
export function mostOpen(bytes: Buffer): readonly (readonly [name: string, files: number])[] {
  const byName = new Map<string, number>()
  for (let at = 0; at + svcProcess.size <= bytes.length; at += svcProcess.size) {
    const start = at + svcProcess.comm
    const end = bytes.indexOf(0, start)
    const name = utf8Text(
      bytes,
      start,
      end < 0 || end > start + svcProcess.commSize ? start + svcProcess.commSize : end,
    )
    byName.set(name, (byName.get(name) ?? 0) + bytes.readUInt32LE(at + svcProcess.openFds))
  }
  const sorted = [...byName].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
  let rest = 0
  for (const [, files] of sorted.slice(mostNames)) rest += files
  const shown = new Map(sorted.slice(0, mostNames))
  // A process may have this name, too.
  if (sorted.length > mostNames) shown.set('other', (shown.get('other') ?? 0) + rest)
  return [...shown]
}
