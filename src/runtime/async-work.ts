// What this process waits for: timers, sockets, servers, requests. The counterpart of Go's goroutines.

import { type AsyncHook, createHook } from 'node:async_hooks'
import { type CodePlace, codeFrames } from './code-frames.ts'
import { type Frame, named, type StackProfile } from './stack-profile.ts'

const maxResources = 10_000
const maxFrames = 16
/** A stack costs 10 µs and more: this bounds it to 1 % of a core, however many requests are served. */
const maxStacksPerSecond = 500

/** Never shown: they end within the turn of the event loop that made them, and there are very many. */
const brief = new Set(['PROMISE', 'TickObject', 'Microtask'])

interface Resource {
  readonly type: string
  /** Made by `captureStackTrace`: V8 formats it only when it is asked for. None beyond so many a second. */
  trace: { stack?: unknown } | undefined
  /** The stack's places, once they were asked for. */
  places: readonly CodePlace[]
}

/** Watches resources from `start` to `stop`; those from before are counted without a stack. */
export class AsyncWork {
  readonly #resources = new Map<number, Resource>()
  readonly #hook: AsyncHook | undefined
  /** Resources that came when there was no room. */
  #missed = 0
  /** Stacks taken since then, on the clock of `performance.now`. */
  #stacks = 0
  #sinceMs = 0

  constructor() {
    const init = (id: number, type: string) => {
      if (brief.has(type)) return
      if (this.#resources.size >= maxResources) {
        this.#missed++
        return
      }
      this.#resources.set(id, { type, trace: this.#mayCapture() ? capture(init) : undefined, places: [] })
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
    const running = { type: '(running)', trace: capture(this.profile), places: [] }
    const groups = new Map<string, { type: string; places: readonly CodePlace[]; count: number }>()
    const add = (type: string, places: readonly CodePlace[], count: number) => {
      const key = [type, ...places.map(at => `${at.url}:${at.lineNumber}:${at.columnNumber}`)].join('\n')
      const group = groups.get(key)
      if (group) group.count += count
      else groups.set(key, { type, places, count })
    }
    add(running.type, placesOf(running), 1)
    const seen = new Map<string, number>()
    for (const resource of this.#resources.values()) {
      add(`(${resource.type})`, placesOf(resource), 1)
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
        'Active asynchronous work by type, with the stack that began it; (running) is this request.',
        this.#hook
          ? `Without a stack: what is older than debug mode, and what came among more than ${maxStacksPerSecond} a second.`
          : 'This runtime cannot watch resources without slowing down every promise: there are no stacks (Node.js 24 can).',
        ...(this.#missed > 0
          ? [`${this.#missed} resources were not recorded: ${maxResources} were active.`]
          : []),
      ],
    }
  }
}

const leavePromises = { trackPromises: false }

/** A hook is to cost promises nothing. A runtime that does not know the option would watch every one of them. */
function canLeavePromises(): boolean {
  const wrong: object = { trackPromises: 'wrong' }
  try {
    createHook(wrong)
    return false
  } catch {
    return true // refused for its type, so the option is known
  }
}

function capture(below: (...args: never[]) => unknown): { stack?: unknown } {
  const trace = {}
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = maxFrames
  Error.captureStackTrace(trace, below)
  Error.stackTraceLimit = limit
  return trace
}

/** The places of a stack, innermost first. Afterwards the stack itself is freed. */
function placesOf(resource: Resource): readonly CodePlace[] {
  const { trace } = resource
  if (!trace) return resource.places
  const prepare = Error.prepareStackTrace
  Error.prepareStackTrace = (_, sites) => sites
  let sites: unknown
  try {
    sites = trace.stack
  } finally {
    Error.prepareStackTrace = prepare
  }
  resource.trace = undefined
  resource.places = (sites as NodeJS.CallSite[])
    .map(codePlace)
    .filter(({ url }) => url !== 'node:internal/async_hooks')
  return resource.places
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

/** Hooks and `getActiveResourcesInfo` spell the same types in two ways. */
function sharedType(type: string): string {
  return type
    .toUpperCase()
    .replace(/^TCPSOCKETWRAP$/, 'TCPWRAP')
    .replace(/^PIPESERVERWRAP$/, 'PIPEWRAP')
}
