import type { BpfObject } from '../kernel/bpf-object.ts'
import { svcCounter } from '../kernel/gen/syscalls.ts'
import { batchCursor, batchDone, type Native } from '../kernel/native.ts'
import type { CaptureCounter, MapState } from './capture.ts'

/** How long a count of a map's entries is shown before they are counted anew: that reads the whole map. */
const entriesMs = 10_000
const batchEntries = 64

/** What the kernel side counted, over all CPUs (bpf/include/layout.h, svc_counter). */
export function kernelCounters(native: Native, object: BpfObject): Record<CaptureCounter, number> {
  const map = object.map('counters')
  const value = Buffer.alloc(map.slotSize)
  native.mapLookup(map, Buffer.alloc(4), value)
  const counters = {} as Record<CaptureCounter, number>
  for (const [index, name] of svcCounter.entries()) {
    let total = 0
    for (let at = 8 * index; at < map.slotSize; at += 8 * svcCounter.length)
      total += value.readUInt32LE(at) + value.readUInt32LE(at + 4) * 4294967296
    counters[name] = total
  }
  return counters
}

/** Maps with the entries that they held at some time of the last ten seconds; arrays count as full. */
export class MapStates {
  private readonly native: Native
  private readonly object: BpfObject
  private readonly entries = new Map<string, { readonly count: number; readonly at: number }>()

  constructor(native: Native, object: BpfObject) {
    this.native = native
    this.object = object
  }

  list(nowMs: number): MapState[] {
    return this.native.objectMaps(this.object.handle).map(spec => ({
      name: spec.name,
      type: spec.type,
      entries: this.entriesOf(spec.name, spec.type, spec.maxEntries, nowMs),
      maxEntries: spec.maxEntries,
    }))
  }

  private entriesOf(name: string, type: string, maxEntries: number, nowMs: number): number {
    if (!type.endsWith('hash')) return type.endsWith('array') ? maxEntries : 0
    const known = this.entries.get(name)
    if (known !== undefined && nowMs - known.at < entriesMs) return known.count
    const map = this.object.map(name)
    const keys = Buffer.alloc(batchEntries * map.keySize)
    const values = Buffer.alloc(batchEntries * map.slotSize)
    const cursor = batchCursor(map)
    let count = 0
    while (!batchDone(cursor)) count += this.native.mapReadBatch(map, cursor, keys, values, false)
    this.entries.set(name, { count, at: nowMs })
    return count
  }
}
