import { u64 } from '../../foundation/lib/u64.ts'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import { svcCounter } from '../../kernel/gen/syscalls.ts'
import type { Native } from '../../kernel/native.ts'
import type { CaptureCounter } from './capture.ts'

/** Counters of the kernel side, over all CPUs (bpf/include/layout.h, svc_counter). */
export function kernelCounters(native: Native, object: BpfObject): Record<CaptureCounter, number> {
  const map = object.map('counters')
  const value = Buffer.alloc(map.slotSize)
  native.mapLookup(map, Buffer.alloc(4), value)
  const counters = {} as Record<CaptureCounter, number>
  for (const [index, name] of svcCounter.entries()) {
    let total = 0
    for (let at = 8 * index; at < map.slotSize; at += 8 * svcCounter.length) total += u64(value, at)
    counters[name] = total
  }
  return counters
}
