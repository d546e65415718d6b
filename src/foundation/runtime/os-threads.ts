import { readdirSync, readFileSync } from 'node:fs'
import { named, type StackProfile } from './stack-profile.ts'

/** The OS threads of this process, by name. */
export function osThreads(): StackProfile {
  const counts = new Map<string, number>()
  for (const id of readdirSync('/proc/self/task')) {
    try {
      const name = readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim()
      counts.set(name, (counts.get(name) ?? 0) + 1)
    } catch {
      // It exited after the listing.
    }
  }
  return {
    name: 'threadcreate',
    types: [{ type: 'threadcreate', unit: 'count' }],
    shown: 0,
    samples: [...counts].map(([name, count]) => ({ stack: [named(name)], values: [count] })),
    startMs: Date.now(),
    period: { type: 'threadcreate', unit: 'count', value: 1 },
    comments: ['Threads by name. The kernel does not keep the stack that created them.'],
  }
}

/** An empty profile: JavaScript threads do not contend for locks. */
export function noContention(name: string): StackProfile {
  return {
    name,
    types: [
      { type: 'contentions', unit: 'count' },
      { type: 'delay', unit: 'nanoseconds' },
    ],
    shown: 1,
    samples: [],
    startMs: Date.now(),
    period: { type: 'contentions', unit: 'count', value: 1 },
    comments: [
      'Empty: JavaScript runs on one thread without locks, so the runtime has no equivalent of this profile.',
    ],
  }
}
