// Pending asynchronous work of this process: timers, sockets, servers, requests. The counterpart of Go's goroutines.

import { type AsyncHook, createHook } from 'node:async_hooks'
import { type CodePlace, codeFrames } from './code-frames.ts'
import { type Frame, named, type StackProfile } from './stack-profile.ts'

const maxResources = 4000
const maxFrames = 16
/** A stack costs 20 to 40 µs: this limits it to 1 % of a core, whatever the request rate. */
const maxStacksPerSecond = 250

/** Not shown: they end within the turn of the event loop that created them, and there are very many. */
const brief = new Set(['PROMISE', 'TickObject', 'Microtask'])

interface Resource {
  readonly type: string
  /** Only for timers: other kinds may end by garbage collection, which a reference would prevent. */
  readonly timer: NodeJS.Timeout | undefined
  /** The stack that created it, innermost first. Empty above the limit per second. */
  readonly places: readonly CodePlace[]
}

/** Tracks resources from `start` to `stop`; earlier ones are counted without a stack. */
export class AsyncWork {
  readonly #resources = new Map<number, Resource>()
  readonly #hook: AsyncHook | undefined
  /** Resources above the limit. */
  #missed = 0
  /** Start of the current second, on the clock of `performance.now`, and the stacks captured since. */
  #stacks = 0
  #sinceMs = 0

  constructor() {
    const init = (id: number, type: string, _: number, object: object) => {
      if (brief.has(type)) return
      if (this.#resources.size >= maxResources) {
        this.#missed++
        return
      }
      const timer = type === 'Timeout' ? (object as NodeJS.Timeout) : undefined
      this.#resources.set(id, { type, timer, places: this.#mayCapture() ? callers(init) : [] })
    }
    const destroy = (id: number) => {
      this.#resources.delete(id)
    }
    if (canLeavePromises()) this.#hook = createHook({ init, destroy, ...leavePromises })
  }

  start(): void {
    this.#hook?.enable()
  }

  stop(): void {
    this.#hook?.disable()
    this.#resources.clear()
  }

  #mayCapture(): boolean {
    if (this.#stacks < maxStacksPerSecond) {
      this.#stacks++
      return true
    }
    const nowMs = performance.now()
    if (nowMs - this.#sinceMs < 1000) return false
    this.#sinceMs = nowMs
    this.#stacks = 1
    return true
  }

  profile(): StackProfile {
    const groups = new Map<string, { type: string; places: readonly CodePlace[]; count: number }>()
    const add = (type: string, places: readonly CodePlace[], count: number) => {
      const key = [type, ...places.map(at => `${at.url}:${at.lineNumber}:${at.columnNumber}`)].join('\n')
      const group = groups.get(key)
      if (group) group.count += count
      else groups.set(key, { type, places, count })
    }
    add('(running)', callers(this.profile), 1)
    const seen = new Map<string, number>()
    for (const resource of this.#resources.values()) {
      add(`(${resource.type})`, resource.places, 1)
      if (resource.timer?.hasRef() === false) continue // nor in getActiveResourcesInfo
      const type = sharedType(resource.type)
      seen.set(type, (seen.get(type) ?? 0) + 1)
    }
    for (const name of process.getActiveResourcesInfo()) {
      const type = sharedType(name)
      const left = seen.get(type) ?? 0
      if (left > 0) seen.set(type, left - 1)
      else add(`(${name})`, [], 1)
    }

    const all = [...groups.values()]
    const frames = codeFrames(all.flatMap(({ places }) => places))
    let next = 0
    return {
      name: 'goroutine',
      types: [{ type: 'goroutine', unit: 'count' }],
      shown: 0,
      samples: all.map(({ type, places, count }) => {
        const callers: Frame[] = places.map(() => frames[next++]!)
        return { stack: [named(type), ...callers], values: [count] }
      }),
      startMs: Date.now(),
      period: { type: 'goroutine', unit: 'count', value: 1 },
      comments: [
        'Active asynchronous work by type, with the stack that started it; (running) is this request.',
        this.#hook
          ? `Without a stack: work older than debug mode, and work started at more than ${maxStacksPerSecond} a second.`
          : 'No stacks: this runtime cannot track resources without slowing down every promise (Node.js 24 can).',
        ...(this.#missed > 0
          ? [`${this.#missed} resources were not recorded: ${maxResources} were active.`]
          : []),
      ],
    }
  }
}

const leavePromises = { trackPromises: false }

/** The hook must not slow down promises. A runtime without this option would track all of them. */
function canLeavePromises(): boolean {
  const wrong: object = { trackPromises: 'wrong' }
  try {
    createHook(wrong)
    return false
  } catch {
    return true // rejected for its type, so the option is known
  }
}

/**
 * The stack above the caller `below`, immediately as plain data: a stack that V8 has not formatted yet retains all
 * objects on it, which made garbage collection under load five times as expensive.
 */
function callers(below: (...args: never[]) => unknown): readonly CodePlace[] {
  const { stackTraceLimit, prepareStackTrace } = Error
  const trace: { stack?: unknown } = {}
  Error.stackTraceLimit = maxFrames
  Error.prepareStackTrace = (_, sites) => sites.map(codePlace)
  try {
    Error.captureStackTrace(trace, below)
    return (trace.stack as CodePlace[]).filter(({ url }) => url !== 'node:internal/async_hooks')
  } catch {
    return [] // for example no room on the stack: an error in a hook would end the process
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    Error.prepareStackTrace = prepareStackTrace
  }
}

function codePlace(site: NodeJS.CallSite): CodePlace {
  const place = {
    functionName: site.getFunctionName() ?? '',
    url: site.getFileName() ?? '',
    lineNumber: (site.getLineNumber() ?? 0) - 1,
    columnNumber: (site.getColumnNumber() ?? 0) - 1,
  }
  const line = site.getEnclosingLineNumber()
  const column = site.getEnclosingColumnNumber()
  if (line === null || column === null) return place
  return { ...place, functionStart: { lineNumber: line - 1, columnNumber: column - 1 } }
}

/** Hooks and `getActiveResourcesInfo` use different names for the same types. */
function sharedType(type: string): string {
  return type
    .toUpperCase()
    .replace(/^TCPSOCKETWRAP$/, 'TCPWRAP')
    .replace(/^PIPESERVERWRAP$/, 'PIPEWRAP')
}
