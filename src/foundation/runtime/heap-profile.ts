// Heap profile of this process, from V8's sampling heap profiler.

import type { HeapProfiler } from 'node:inspector'
import type { Session } from 'node:inspector/promises'
import { type CodePlace, codeFrames } from './code-frames.ts'
import { inspectorSession } from './inspector-session.ts'
import { named, type StackProfile } from './stack-profile.ts'

/** Average bytes of allocation per sample: V8's default. It costs 1 MB, and no more CPU than 16 times as much. */
const intervalBytes = 32 * 1024

/** V8's response, with fields that @types/node lacks. */
interface HeapNode extends HeapProfiler.SamplingHeapProfileNode {
  readonly id: number
  readonly children: HeapNode[]
}
interface SampledHeap {
  readonly head: HeapNode
  /** One for each sampled object that is alive. */
  readonly samples: readonly { readonly nodeId: number }[]
}

/** Samples allocations from `start` to `stop`; earlier ones have no stack. */
export class HeapSampling {
  readonly #session: Session

  private constructor(session: Session) {
    this.#session = session
  }

  /** Throws if this runtime has no inspector. */
  static async start(): Promise<HeapSampling> {
    const session = await inspectorSession()
    try {
      await session.post('HeapProfiler.startSampling', { samplingInterval: intervalBytes })
    } catch (error) {
      session.disconnect()
      throw error
    }
    return new HeapSampling(session)
  }

  stop(): void {
    this.#session.disconnect() // also ends the sampling and frees its memory
  }

  /** Live objects: V8 collects garbage first. */
  async profile(): Promise<StackProfile> {
    const startMs = Date.now()
    const { profile } = await this.#session.post('HeapProfiler.getSamplingProfile')
    return heapProfile(profile as unknown as SampledHeap, startMs, process.memoryUsage())
  }
}

function heapProfile(
  { head, samples }: SampledHeap,
  startMs: number,
  { heapUsed, external, arrayBuffers, rss }: NodeJS.MemoryUsage,
): StackProfile {
  const counts = new Map<number, number>()
  for (const { nodeId } of samples) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1)

  const places: CodePlace[] = []
  const found: { stack: number[]; values: number[] }[] = [] // stacks of indexes into `places`
  const open: { node: HeapNode; callers: readonly number[] }[] = []
  for (const node of head.children) open.push({ node, callers: [] })
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, callers } = next
    const stack = [places.push(node.callFrame) - 1, ...callers]
    if (node.selfSize > 0) found.push({ stack, values: [counts.get(node.id) ?? 0, node.selfSize] })
    for (const child of node.children) open.push({ node: child, callers: stack })
  }
  const frames = codeFrames(places)
  const sampled = found.reduce((sum, { values }) => sum + values[1]!, 0)
  const rest: [name: string, bytes: number][] = [
    ['(array buffers)', arrayBuffers],
    ['(external)', external - arrayBuffers],
    ['(heap not sampled)', heapUsed - sampled],
  ]
  return {
    name: 'heap',
    types: [
      { type: 'samples', unit: 'count' },
      { type: 'inuse_space', unit: 'bytes' },
    ],
    shown: 1,
    samples: [
      ...found.map(({ stack, values }) => ({ stack: stack.map(index => frames[index]!), values })),
      ...rest
        .filter(([, bytes]) => bytes > 0)
        .map(([name, bytes]) => ({ stack: [named(name)], values: [0, bytes] })),
    ],
    startMs,
    period: { type: 'space', unit: 'bytes', value: intervalBytes },
    comments: [
      'Sampled by V8 since debug mode was turned on; V8 does not report how many objects a sample represents.',
      '(heap not sampled) was allocated before that; (array buffers) and (external) are outside the heap.',
      `Resident set, shared pages of the runtime included: ${rss} bytes.`,
    ],
  }
}
