// Resolves a number or name to processes.

import { basename } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { nearest } from '../../foundation/lib/nearest.ts'
import { linkText, sortedNames, textOfFile } from '../../foundation/lib/optional-files.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import type { Container } from '../../foundation/model/entity.ts'
import { allListeners, isListenedAt, listenersAt } from '../../identity/entities/listening-ports.ts'
import type { DocumentContext } from './document-context.ts'

export const procDir = '/proc'

/** A process, and the port that it was found by; 0 if it was found in another way. */
export interface Meant {
  readonly pid: number
  readonly port: number
}

export interface Target {
  readonly processes: readonly Meant[]
  /** A port whose process is not visible; 0 for none. */
  readonly hiddenPort: number
  /** A container that a runtime knows, without visible processes. */
  readonly container: Container | undefined
  /** If nothing was found: what was searched for, and similar names. */
  readonly hint: string
}

const nothing: Target = { processes: [], hiddenPort: 0, container: undefined, hint: '' }

const maxProcesses = 10_000
/** Maximum number of processes whose names are looked up at some cost. */
const maxDescribed = 200
const maxPort = 65_535
/** Digits of a container ID that identify it well enough. */
const leastIdDigits = 4
/** Time slice before yielding, in milliseconds. */
const workMs = 2

/** Resolves a word; yields to other work. */
export async function targetOf(parts: DocumentContext, word: string): Promise<Target> {
  const [, kind = '', number = ''] = /^(?:(port|pid):)?(\d{1,10})$/.exec(word) ?? []
  if (number === '') return word === '' ? emptyWord : named(parts, word)
  const value = Number(number)
  const byPort = kind === 'pid' || value > maxPort || value === 0 ? [] : await listenersAt(procDir, value)
  const isPid = kind !== 'port' && commOf(value) !== ''
  const processes = [
    ...byPort.map(pid => ({ pid, port: value })),
    ...(isPid ? [{ pid: value, port: 0 }] : []),
  ]
  if (processes.length > 0) return { ...nothing, processes }
  if (kind !== 'pid' && value <= maxPort && (await isListenedAt(procDir, value)))
    return { ...nothing, hiddenPort: value }
  // A container may have a number as its name, or an id of digits alone.
  const other = kind === '' ? await named(parts, word) : nothing
  if (other.processes.length > 0 || other.container !== undefined) return other
  return { ...nothing, hint: await hintOfNumber(value, kind) }
}

const emptyWord: Target = {
  ...nothing,
  hint: 'no target: give a port, a pid, or the name of a service, executable, container or pod',
}

async function hintOfNumber(value: number, kind: string): Promise<string> {
  const isPort = kind !== 'pid' && value <= maxPort
  const looked = [
    ...(isPort ? [`nothing listens on TCP port ${value}`] : []),
    ...(kind === 'port' ? [] : [`there is no process with pid ${value}`]),
  ].join(', and ')
  const ports = new Set([...(await allListeners(procDir)).values()].flat())
  const near = [...ports].sort((a, b) => Math.abs(a - value) - Math.abs(b - value)).slice(0, 5)
  if (!isPort || near.length === 0) return looked
  return `${looked}; the nearest ports in use are ${near.join(', ')}`
}

async function named(parts: DocumentContext, word: string): Promise<Target> {
  const names = new Set<string>()
  const found = await byOwnName(parts, word.toLowerCase(), names)
  if (found.length > 0) return { ...nothing, processes: found }
  const containers = containersNamed(parts, word, names)
  const inside = await processesIn(containers)
  if (inside.length > 0) return { ...nothing, processes: inside }
  if (containers.length > 0) return { ...nothing, container: containers[0] }
  const described = await byDescription(parts, word.toLowerCase(), names)
  if (described.length > 0) return { ...nothing, processes: described }
  const near = nearest(word, names)
  const looked = `no service, executable, container or pod "${parts.shown(word)}" found among the processes that svc can see`
  return { ...nothing, hint: near === undefined ? looked : `${looked}; did you mean ${near}?` }
}

/** From /proc and known processes, at no cost. Services come first. */
async function byOwnName(parts: DocumentContext, word: string, names: Set<string>): Promise<Meant[]> {
  const services: Meant[] = []
  const programs: Meant[] = []
  const turn = new Turn(workMs)
  for (const pid of pidsOf()) {
    const attributes = parts.processes.known(pid)?.attributes
    const comm = commOf(pid)
    const service = String(attributes?.get('service.name') ?? '')
    const pod = String(attributes?.get('k8s.pod.name') ?? '')
    const inPod = pod === '' ? '' : `${attributes?.get('k8s.namespace.name')}/${pod}`
    const container = String(attributes?.get('container.name') ?? '')
    for (const name of [service, comm, container, pod]) if (name !== '') names.add(name)
    if ([service, container, pod, inPod].some(name => name !== '' && name.toLowerCase() === word))
      services.push({ pid, port: 0 })
    else if (comm.toLowerCase() === word || executableOf(pid).toLowerCase() === word)
      programs.push({ pid, port: 0 })
    await turn.rest()
  }
  return services.length > 0 ? services : programs
}

/** Unknown processes have to be looked up: only listening ones are worth it. */
async function byDescription(parts: DocumentContext, word: string, names: Set<string>): Promise<Meant[]> {
  const found: Meant[] = []
  const listeners = [...(await allListeners(procDir)).keys()].slice(0, maxDescribed)
  for (const pid of listeners) {
    const view = await parts.processes.explain(pid)
    await nextTurn()
    if (view === undefined) continue
    names.add(view.name)
    const own = [view.name, view.containerName, view.podName, `${view.podNamespace}/${view.podName}`]
    if (own.some(name => name !== '' && name.toLowerCase() === word)) found.push({ pid, port: 0 })
  }
  return found
}

function containersNamed(
  { discovery: { entities } }: DocumentContext,
  word: string,
  names: Set<string>,
): Container[] {
  const isId = /^[0-9a-f]+$/.test(word) && word.length >= leastIdDigits
  const found: Container[] = []
  for (const container of entities.eachContainer()) {
    const pod = entities.podOfUid(container.podUid)
    if (container.name !== '') names.add(container.name)
    if (pod !== undefined) names.add(pod.name)
    const isMeant =
      container.name === word ||
      (isId && container.id.startsWith(word)) ||
      (pod !== undefined && (pod.name === word || `${pod.namespace}/${pod.name}` === word))
    if (isMeant) found.push(container)
  }
  return found
}

async function processesIn(containers: readonly Container[]): Promise<Meant[]> {
  if (containers.length === 0) return []
  const found: Meant[] = []
  const turn = new Turn(workMs)
  for (const pid of pidsOf()) {
    const groups = textOfFile(`${procDir}/${pid}/cgroup`)
    if (containers.some(({ id }) => groups.includes(id))) found.push({ pid, port: 0 })
    await turn.rest()
  }
  return found
}

function pidsOf(): number[] {
  return sortedNames(procDir)
    .filter(name => /^\d+$/.test(name))
    .slice(0, maxProcesses)
    .map(Number)
}

/** '' if there is no such process. */
function commOf(pid: number): string {
  return textOfFile(`${procDir}/${pid}/comm`).trimEnd()
}

/** PF_KTHREAD of linux/sched.h, in the ninth field of /proc/PID/stat. */
const kernelThread = 0x00200000

/** Whether it is a kernel thread, without a program. */
export function isKernelThread(pid: number): boolean {
  const stat = textOfFile(`${procDir}/${pid}/stat`)
  // The second field is a name with arbitrary characters.
  const flags = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 7)[6]
  return (Number(flags) & kernelThread) !== 0
}

/** File name of the executable; '' for kernel threads, and if it cannot be read. */
function executableOf(pid: number): string {
  return basename(linkText(`${procDir}/${pid}/exe`)).replace(/ \(deleted\)$/, '')
}
