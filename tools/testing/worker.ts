// Runs test files in this process, one after the other, each as a suite of its own, and looks at what each left behind.
// Arguments: the files. Reports through events.ts.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { suite } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { say } from './events.ts'

/** What handles that were closed may take to be gone. */
const patienceMs = 3000
const mostIdleSeconds = 20

/**
 * What keeps the event loop running, by kind. A socket is listed as long as it is not collected, also where nothing is
 * read from it any more: one that does keep the loop running is seen at the end of the process.
 */
function openHandles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter(kind => !/^(?:TTYWrap|FSReq|Immediate|TCPSocketWrap|PipeWrap)/.test(kind))
}

/** Processor time of this process and of its children that have ended, in ms (proc_pid_stat(5), fields 14 to 17). */
function cpuMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]!.split(' ')
  return 10 * fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0)
}

interface Surroundings {
  readonly handles: readonly string[]
  readonly directory: string
  readonly environment: string
}

function surroundings(): Surroundings {
  return {
    handles: openHandles(),
    directory: process.cwd(),
    environment: JSON.stringify(Object.entries(process.env).sort()),
  }
}

/** What of `now` was not in `before`. */
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
  return faults
}

const files = process.argv.slice(2)
let leaking = false
// Tests wait for children and timers that keep no loop running. Where nothing else does for long, they wait in vain.
let idleSeconds = 0
const running = setInterval(() => {
  const others = process.getActiveResourcesInfo().filter(kind => kind !== 'TTYWrap').length - 1
  idleSeconds = others > 0 ? 0 : idleSeconds + 1
  if (idleSeconds === mostIdleSeconds) clearInterval(running)
}, 1000)
for (const file of files) {
  process.env.TEST_FILE = file
  say({ kind: 'begin', file })
  const before = surroundings()
  const cpuBefore = cpuMs()
  await suite(file, () => import(pathToFileURL(resolve(file)).href))
  const faults = await leftBehind(before)
  leaking ||= faults.length > 0
  say({ kind: 'end', file, faults, cpuMs: cpuMs() - cpuBefore })
}
clearInterval(running)
setTimeout(
  () => {
    const open = process.getActiveResourcesInfo().join(', ')
    const fault = `the process of ${files.join(', ')} does not end: ${open}`
    if (!leaking) say({ kind: 'end', file: files.at(-1)!, faults: [fault], cpuMs: 0 })
    process.exit()
  },
  leaking ? 500 : patienceMs,
).unref()
