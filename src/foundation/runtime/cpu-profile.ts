// CPU profile of the main thread, from V8's sampling profiler.

import type { Profiler } from 'node:inspector'
import type { Session } from 'node:inspector/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { codeFrames } from './code-frames.ts'
import { inspectorSession } from './inspector-session.ts'
import { type Frame, named, type StackProfile, type StackSample } from './stack-profile.ts'

/** 200 samples a second cost about 1 % of a core; V8's default of 1,000 costs 4 %. */
const intervalUs = 5000

/** Records for a number of seconds. Rejects with the signal's reason as soon as it aborts. */
export async function recordCpuProfile(seconds: number, signal: AbortSignal): Promise<StackProfile> {
  signal.throwIfAborted()
  const session = await inspectorSession()
  try {
    const startMs = Date.now()
    await startCpuProfiler(session)
    await delay(seconds * 1000, undefined, { signal }).catch(() => signal.throwIfAborted())
    const { profile } = await session.post('Profiler.stop')
    return cpuProfile(profile, startMs)
  } finally {
    session.disconnect() // also stops V8's profiler and frees its memory
  }
}

/** Until `Profiler.stop`, or until the session ends. */
export async function startCpuProfiler(session: Session): Promise<void> {
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: intervalUs })
  await session.post('Profiler.start')
}

function cpuProfile(
  { nodes, samples = [], timeDeltas = [], startTime, endTime }: Profiler.Profile,
  startMs: number,
): StackProfile {
  const weights = new Map<number, { count: number; us: number }>()
  for (const [index, id] of samples.entries()) {
    let weight = weights.get(id)
    if (!weight) {
      weight = { count: 0, us: 0 }
      weights.set(id, weight)
    }
    weight.count++
    weight.us += Math.max(0, timeDeltas[index] ?? 0) // V8 may record two samples in the wrong order
  }
  const frames = codeFrames(nodes.map(({ callFrame }) => callFrame))
  const frameOf = new Map<number, Frame>()
  const parentOf = new Map<number, number>()
  for (const [index, { id, children = [] }] of nodes.entries()) {
    frameOf.set(id, frames[index]!)
    for (const child of children) parentOf.set(child, id)
  }
  const all: StackSample[] = []
  for (const [id, { count, us }] of weights) {
    const stack: Frame[] = []
    for (let at: number | undefined = id; at !== undefined; at = parentOf.get(at))
      if (parentOf.has(at)) stack.push(frameOf.get(at)!) // all but V8's (root)
    all.push({ stack: stack.length > 0 ? stack : [named('(root)')], values: [count, us * 1000] })
  }
  // Waiting takes no CPU, but a profile of an idle agent is not empty either.
  const busy = all.filter(({ stack }) => stack[0]!.name !== '(idle)')
  return {
    name: 'profile',
    types: [
      { type: 'samples', unit: 'count' },
      { type: 'cpu', unit: 'nanoseconds' },
    ],
    shown: 1,
    samples: busy.length > 0 ? busy : all,
    startMs,
    durationMs: (endTime - startTime) / 1000,
    period: { type: 'cpu', unit: 'nanoseconds', value: intervalUs * 1000 },
    comments: [
      'The main thread, sampled by V8. (program) is native code, (idle) is left out.',
      'Inlined functions count for the function that contains them.',
    ],
  }
}
