// A profile of very many frames, made by hand, as the live page asks for it.
import type { FlameDocument, ProfilesLine } from '../../src/view/api/ui/documents.ts'

const mostDepth = 60
/** Of the functions that no other calls. */
const nanoseconds = 1_000_000

/** One tree of so many frames, each below one of those before it, half of them deep. */
export function largeFlame(frames: number): FlameDocument {
  const names = Array.from({ length: 3000 }, (_, i) => `handle_request_${i}`)
  const files = ['/usr/sbin/nginx', '/app/node_modules/cart/index.js', '/usr/lib/libssl.so.3']
  const types = ['', 'native', 'v8js', 'kernel']
  const parent = [-1]
  const depth = [0]
  for (let i = 1; i < frames; i++) {
    // Numbers that look like chance, and are the same each time.
    const chance = (Math.imul(i, 2_654_435_761) >>> 0) / 2 ** 32
    const above = i % 2 === 0 ? Math.max(0, i - 1 - Math.floor(chance * 40)) : Math.floor(chance * i)
    const under = depth[above]! < mostDepth ? above : Math.floor((chance * i) / mostDepth)
    parent.push(under)
    depth.push(depth[under]! + 1)
  }
  const self = new Array<number>(frames).fill(0)
  const sum = new Array<number>(frames).fill(0)
  for (let i = frames - 1; i >= 0; i--) {
    if (sum[i] === 0) self[i] = nanoseconds * (1 + (i % 7))
    sum[i]! += self[i]!
    if (i > 0) sum[parent[i]!]! += sum[i]!
  }
  const each = (of: number) => Array.from({ length: frames }, (_, i) => i % of)
  return {
    unit: 'nanoseconds',
    total: sum[0]!,
    base_total: 0,
    names,
    files,
    types,
    parent,
    name: each(names.length),
    file: each(files.length),
    type: each(types.length),
    self,
    sum,
    base: [],
    omitted: 0,
    missing_names: [],
  }
}

/** The list of profiles that goes with it. */
export function largeProfiles(total: number, nowMs: number): ProfilesLine {
  const stepMs = 10_000
  const intervals = Array.from({ length: 30 }, (_, i) => ({
    from_ms: nowMs - (30 - i) * stepMs,
    to_ms: nowMs - (29 - i) * stepMs,
    value: total / 30,
  }))
  return {
    kinds: ['cpu'],
    unit: 'nanoseconds',
    from_ms: intervals[0]!.from_ms,
    to_ms: nowMs,
    intervals,
    services: [{ name: 'shop', value: total }],
    no_data_reason: '',
  }
}
