// Runs test files in this process, one after the other, each as a suite of its own, and checks what each left behind.
// Arguments: the files. Reports through events.ts.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { suite } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { starts } from '../troubleshooting-texts.ts'
import { say } from './events.ts'
import { Reached } from './reached.ts'

/** Time for closed handles to disappear. */
const patienceMs = 3000
const mostIdleSeconds = 10

/**
 * What keeps the event loop running, by kind. A socket is listed until it is collected, even if nothing reads from it
 * any more: one that does keep the loop running shows at the end of the process.
 */
function openHandles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter(kind => !/^(?:TTYWrap|FSReq|Immediate|TCPSocketWrap|PipeWrap)/.test(kind))
}

/** Processor time of this process and of its ended children, in ms (proc_pid_stat(5), fields 14 to 17). */
function cpuMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ')
  return 10 * fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)
}

/** Globals that tests replace, by name. */
const replaceable: Readonly<Record<string, () => unknown>> = {
  fetch: () => fetch,
  setTimeout: () => setTimeout,
  setInterval: () => setInterval,
  setImmediate: () => setImmediate,
  Date: () => Date,
  'Date.now': () => Date.now,
  'performance.now': () => performance.now,
  'Math.random': () => Math.random,
  'process.exit': () => process.exit,
  'process.kill': () => process.kill,
  'process.getuid': () => process.getuid,
  'process.stdout.write': () => process.stdout.write,
  'process.stderr.write': () => process.stderr.write,
}
/** The runtime adds its own listeners of these with the first test: they must stay. */
const ofRuntime = ['uncaughtException', 'unhandledRejection'] as const
const ofTests = ['warning', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const

interface Surroundings {
  readonly handles: readonly string[]
  readonly directory: string
  readonly environment: string
  readonly globals: ReadonlyMap<string, unknown>
  readonly listeners: ReadonlyMap<string, readonly unknown[]>
}

function surroundings(): Surroundings {
  return {
    handles: openHandles(),
    directory: process.cwd(),
    environment: JSON.stringify(Object.entries(process.env).sort()),
    globals: new Map(Object.entries(replaceable).map(([name, of]) => [name, of()])),
    listeners: new Map([...ofRuntime, ...ofTests].map(event => [event, process.listeners(event as 'exit')])),
  }
}

/** Items of `now` missing from `before`. */
function added(before: readonly string[], now: readonly string[]): string[] {
  const rest = [...before]
  return now.filter(kind => {
    const at = rest.indexOf(kind)
    if (at >= 0) rest.splice(at, 1)
    return at < 0
  })
}

async function leftBehind(before: Surroundings): Promise<string[]> {
  const faults: string[] = []
  const end = Date.now() + patienceMs
  let left = added(before.handles, openHandles())
  while (left.length > 0 && Date.now() < end) {
    await sleep(10)
    // The timer of this sleep has ended and is not among them.
    left = added(before.handles, openHandles())
  }
  if (left.length > 0) faults.push(`leaves open: ${[...new Set(left)].sort().join(', ')}`)
  const now = surroundings()
  if (now.directory !== before.directory) faults.push(`leaves the process in ${now.directory}`)
  if (now.environment !== before.environment) faults.push('leaves the environment of the process changed')
  for (const [name, value] of now.globals)
    if (value !== before.globals.get(name)) faults.push(`leaves ${name} replaced`)
  for (const [event, listeners] of now.listeners) {
    const was = before.listeners.get(event)!
    const isRemoved = was.some(each => !listeners.includes(each))
    if (isRemoved || (ofTests.some(each => each === event) && listeners.length > was.length))
      faults.push(`leaves other listeners of ${event}`)
  }
  return faults
}

const files = process.argv.slice(2)
const reached = new Reached(starts.map(([message]) => message))
let leaking = false
// Tests may wait for children and timers that do not keep the loop running. If nothing is open for long, nothing more
// will happen.
let idleSeconds = 0
const running = setInterval(() => {
  const others = process.getActiveResourcesInfo().filter(kind => !/^(?:TTY|Pipe)Wrap$/.test(kind)).length - 1
  idleSeconds = others > 0 ? 0 : idleSeconds + 1
  if (idleSeconds < mostIdleSeconds) return
  const fault = `is stuck: nothing was open for ${mostIdleSeconds} s`
  say({ kind: 'end', file: process.env.TEST_FILE!, faults: [fault], cpuMs: 0, reached: [] })
  process.exit(1)
}, 1000)
for (const file of files) {
  process.env.TEST_FILE = file
  say({ kind: 'begin', file })
  const before = surroundings()
  const cpuBefore = cpuMs()
  await suite(file, () => import(pathToFileURL(resolve(file)).href))
  const faults = await leftBehind(before)
  leaking ||= faults.length > 0
  say({ kind: 'end', file, faults, cpuMs: cpuMs() - cpuBefore, reached: reached.take() })
}
clearInterval(running)
setTimeout(
  () => {
    const open = process.getActiveResourcesInfo().join(', ')
    const fault = `the process of ${files.join(', ')} does not end: ${open}`
    if (!leaking) say({ kind: 'end', file: files.at(-1)!, faults: [fault], cpuMs: 0, reached: [] })
    process.exit()
  },
  leaking ? 500 : patienceMs,
).unref()
