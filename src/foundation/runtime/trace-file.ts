// Trace of runtime events for Perfetto and Chrome:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

import type { Profiler } from 'node:inspector'
import { setTimeout as delay } from 'node:timers/promises'
import { codeFrames, projectPath } from './code-frames.ts'
import { startCpuProfiler } from './cpu-profile.ts'
import { inspectorSession } from './inspector-session.ts'

/** Garbage collection, compilation, marks of node:perf_hooks, thread pool work. No names, no data. */
const categories = ['v8', 'node.perf', 'node.threadpoolwork.async']
const maxTraceBytes = 16 * 1024 * 1024
const textRows = 100

interface TraceEvent {
  readonly cat: string
  readonly name: string
  /** Microseconds. */
  readonly dur?: number
}

export interface TraceFile {
  readonly json: Buffer
  /** Events by name, as text. */
  readonly text: string
}

/**
 * Records for a number of seconds, or until `maxBytes` are full. Rejects with the signal's reason as soon as it aborts.
 * The stacks are from the CPU profiler, because those of V8's tracing cost a sixth of a core.
 */
export async function recordTrace(
  seconds: number,
  signal: AbortSignal,
  maxBytes = maxTraceBytes,
): Promise<TraceFile> {
  signal.throwIfAborted()
  const session = await inspectorSession()
  const collected = new CollectedEvents(maxBytes)
  try {
    const complete = new Promise<void>(resolve => session.once('NodeTracing.tracingComplete', resolve))
    session.on('NodeTracing.dataCollected', ({ params }) => collected.add(params.value as TraceEvent[]))
    await session.post('NodeTracing.start', { traceConfig: { includedCategories: categories } })
    await startCpuProfiler(session)
    await delay(seconds * 1000, undefined, { signal: AbortSignal.any([signal, collected.full]) }).catch(
      () => {},
    )
    const { profile } = await session.post('Profiler.stop')
    await session.post('NodeTracing.stop')
    await complete
    signal.throwIfAborted()
    return collected.file(profileEvents(profile))
  } finally {
    session.disconnect()
  }
}

/** V8's profile as the two events that Chrome and Perfetto read. */
function profileEvents({ nodes, samples, timeDeltas, startTime }: Profiler.Profile): TraceEvent[] {
  const frames = codeFrames(nodes.map(({ callFrame }) => callFrame))
  const parentOf = new Map<number, number>()
  for (const { id, children = [] } of nodes) for (const child of children) parentOf.set(child, id)
  const named = nodes.map(({ id }, index) => {
    const { name, file, line } = frames[index]!
    const callFrame = { functionName: name, ...(file === '' ? {} : { url: file, lineNumber: line - 1 }) }
    return { id, parent: parentOf.get(id), callFrame }
  })
  const event = (name: string, data: object) => ({
    pid: process.pid,
    tid: process.pid, // the main thread
    ts: startTime,
    ph: 'P',
    cat: 'disabled-by-default-v8.cpu_profiler',
    name,
    id: '0x1',
    args: { data },
  })
  const cpuProfile = { nodes: named, samples }
  return [event('Profile', { startTime }), event('ProfileChunk', { cpuProfile, timeDeltas })]
}

class CollectedEvents {
  readonly #full = new AbortController()
  readonly #maxBytes: number
  readonly #parts: Buffer[] = []
  readonly #totals: Totals = new Map()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Aborts when the limit is reached. */
  get full(): AbortSignal {
    return this.#full.signal
  }

  add(events: readonly TraceEvent[]): void {
    let text = ''
    for (const event of events) {
      if (this.full.aborted) break
      if (event.cat === '__metadata') continue // paths and versions of this host
      const json = `${eventJson(event)},\n`
      if (this.#bytes + json.length > this.#maxBytes) {
        this.#full.abort()
        break
      }
      this.#bytes += json.length
      count(this.#totals, event)
      text += json
    }
    if (text !== '') this.#parts.push(Buffer.from(text))
  }

  /** Includes the profile's events, which are few and always added. */
  file(profile: readonly TraceEvent[]): TraceFile {
    const truncated = this.full.aborted
    const last = { ph: 'M', cat: '__metadata', name: 'process_name', pid: process.pid, args: { name: 'svc' } }
    const json = Buffer.concat([
      Buffer.from('{"displayTimeUnit":"ms","traceEvents":[\n'),
      ...this.#parts,
      Buffer.from([...profile.map(eventJson), JSON.stringify(last)].join(',\n')),
      Buffer.from(`\n],"metadata":${JSON.stringify({ truncated })}}\n`),
    ])
    for (const event of profile) count(this.#totals, event)
    const title = `trace: ${json.length} bytes${truncated ? ', truncated' : ''}`
    return { json, text: totalsText(title, this.#totals) }
  }
}

type Totals = Map<string, { count: number; us: number }>

function count(totals: Totals, { cat, name, dur = 0 }: TraceEvent): void {
  const key = `${name} ${cat}`
  const total = totals.get(key)
  if (total) {
    total.count++
    total.us += dur
  } else totals.set(key, { count: 1, us: dur })
}

function totalsText(title: string, totals: Totals): string {
  const sorted = [...totals].sort(([, a], [, b]) => b.us - a.us || b.count - a.count)
  const lines = [title, '      events           time  name']
  for (const [key, { count, us }] of sorted.slice(0, textRows))
    lines.push(`${String(count).padStart(12)} ${(us / 1000).toFixed(1).padStart(12)}ms  ${key}`)
  if (sorted.length > textRows) lines.push(`# ${sorted.length - textRows} more`)
  return `${lines.join('\n')}\n`
}

function eventJson(event: TraceEvent): string {
  return JSON.stringify(event, (_, value) =>
    typeof value === 'string' && /^(file:\/\/)?\//.test(value) ? projectPath(value) : value,
  )
}
