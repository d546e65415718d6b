// The processes with the highest usage, read from /proc/PID/stat while there are viewers.

import { closeSync, openSync, readSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { pageSizeBytes } from '../../foundation/lib/page-size.ts'
import { Scanner } from '../../foundation/lib/scanner.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import { utf8Text } from '../../foundation/lib/utf8-text.ts'

export interface TopProcess {
  readonly pid: number
  /** Name of its first thread, from the kernel. */
  readonly comm: string
  /** Percent of one core. */
  readonly cpuPercent: number
  readonly rssBytes: number
}

export interface TopProcessesOptions {
  readonly procfs: string
  /** Maximum number of processes to read; those with the highest PIDs are omitted. */
  readonly mostProcesses?: number
  /** Maximum number of processes to list. */
  readonly most?: number
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** Of /proc/PID/stat, on all processors that the agent runs on (proc(5), USER_HZ). */
const ticksPerSecond = 100
/** Time slice before yielding, in milliseconds. */
const workMs = 1.5
/** Period of readings, and its minimum as a multiple of the duration of one. */
const everyMs = 2000
const restFactor = 100
/** The first reading has only averages since the start of each process; the next one follows soon. */
const secondLookMs = 800
const openParenthesis = 40
const closeParenthesis = 41
const noTicks = Number.NaN

interface Process {
  startTicks: number
  cpuTicks: number
  cpuPercent: number
  rssPages: number
  round: number
}

/** Values read of a process. */
interface Stat {
  startTicks: number
  cpuTicks: number
  rssPages: number
  comm: string
}

/** Reads on demand, once for all viewers. */
export class TopProcesses {
  /** The last reading, highest usage first. */
  list: readonly TopProcess[] = []
  readonly #procfs: string
  readonly #mostProcesses: number
  readonly #most: number
  readonly #now: () => number
  readonly #known = new Map<number, Process>()
  readonly #buffer = Buffer.allocUnsafeSlow(1024)
  readonly #scan = new Scanner(Buffer.alloc(0))
  readonly #stat: Stat = { startTicks: 0, cpuTicks: 0, rssPages: 0, comm: '' }
  #pageBytes = 0
  #round = 0
  #lookedMs = Number.NEGATIVE_INFINITY
  #dueMs = Number.NEGATIVE_INFINITY
  #looking: Promise<void> | undefined

  constructor({
    procfs,
    mostProcesses = 4096,
    most = 10,
    now = () => performance.now(),
  }: TopProcessesOptions) {
    this.#procfs = procfs
    this.#mostProcesses = mostProcesses
    this.#most = most
    this.#now = now
  }

  /** Reads if due. Resolves when done; never rejects. */
  async look(): Promise<void> {
    if (this.#looking !== undefined) return this.#looking
    if (this.#now() < this.#dueMs) return
    this.#looking = this.#look()
    try {
      await this.#looking
    } catch {
      this.list = [] // no /proc, or not for this process
    }
    this.#looking = undefined
  }

  async #look(): Promise<void> {
    const pids = await this.#pids()
    const sinceBootTicks = this.#sinceBootTicks()
    const nowMs = this.#now()
    const passedMs = nowMs - this.#lookedMs
    this.#round++
    const turn = new Turn(workMs)
    for (const pid of pids) {
      this.#read(pid, passedMs, sinceBootTicks)
      if (turn.isOver) await turn.next()
    }
    for (const [pid, { round }] of this.#known) if (round < this.#round) this.#known.delete(pid)
    this.list = this.#top()
    const isFirst = this.#lookedMs === Number.NEGATIVE_INFINITY
    this.#lookedMs = nowMs
    this.#dueMs = nowMs + Math.max(isFirst ? secondLookMs : everyMs, turn.workedMs * restFactor)
  }

  async #pids(): Promise<number[]> {
    const names = await readdir(this.#procfs)
    const pids: number[] = []
    for (const name of names) {
      const pid = Number(name)
      if (pid > 0 && Number.isInteger(pid)) pids.push(pid)
    }
    if (pids.length > this.#mostProcesses) {
      pids.sort((a, b) => a - b)
      pids.length = this.#mostProcesses
    }
    return pids
  }

  #read(pid: number, passedMs: number, sinceBootTicks: number): void {
    const stat = this.#statOf(pid, false)
    if (stat === undefined) return
    const { startTicks, cpuTicks, rssPages } = stat
    const known = this.#known.get(pid)
    if (known === undefined || known.startTicks !== startTicks) {
      // As top(1) shows it at first: the average since the start.
      const aged = Math.max(ticksPerSecond, sinceBootTicks - startTicks)
      const cpuPercent = aged > 0 ? (100 * cpuTicks) / aged : 0
      this.#known.set(pid, { startTicks, cpuTicks, cpuPercent, rssPages, round: this.#round })
      return
    }
    const grown = Math.max(0, cpuTicks - known.cpuTicks)
    known.cpuPercent = (100 * grown * 1000) / ticksPerSecond / Math.max(1, passedMs)
    known.cpuTicks = cpuTicks
    known.rssPages = rssPages
    known.round = this.#round
  }

  #top(): TopProcess[] {
    const first: { pid: number; process: Process }[] = []
    for (const [pid, process] of this.#known) {
      const last = first[this.#most - 1]
      if (last !== undefined && compare(last.process, process) <= 0) continue
      if (last !== undefined) first.pop()
      let at = first.length
      while (at > 0 && compare(first[at - 1]!.process, process) > 0) at--
      first.splice(at, 0, { pid, process })
    }
    this.#pageBytes ||= pageSizeBytes()
    return first.flatMap(({ pid, process }) => {
      const comm = this.#statOf(pid, true)?.comm
      if (comm === undefined) return []
      const { cpuPercent, rssPages } = process
      return [
        { pid, comm, cpuPercent: Math.round(cpuPercent * 10) / 10, rssBytes: rssPages * this.#pageBytes },
      ]
    })
  }

  /** Undefined if it has ended. Valid until the next call. */
  #statOf(pid: number, isNamed: boolean): Stat | undefined {
    const bytes = this.#bytesOf(`${this.#procfs}/${pid}/stat`)
    if (bytes === undefined) return undefined
    // The name may contain anything, also parentheses; the rest does not.
    const end = bytes.lastIndexOf(closeParenthesis)
    if (end < 0) return undefined
    const scan = this.#scan.reset(bytes.subarray(end + 1))
    if (!scan.line()) return undefined
    const stat = this.#stat
    scan.skip(11)
    stat.cpuTicks = scan.number() + scan.number()
    scan.skip(6)
    stat.startTicks = scan.number()
    scan.skip()
    stat.rssPages = Math.max(0, scan.number())
    if (Number.isNaN(stat.cpuTicks + stat.startTicks + stat.rssPages)) return undefined
    if (isNamed) stat.comm = utf8Text(bytes, bytes.indexOf(openParenthesis) + 1, end)
    return stat
  }

  #bytesOf(path: string): Buffer | undefined {
    let fd: number
    try {
      fd = openSync(path, 'r')
    } catch {
      return undefined // ended since
    }
    try {
      return this.#buffer.subarray(0, readSync(fd, this.#buffer, 0, this.#buffer.length, 0))
    } catch {
      return undefined // ended since
    } finally {
      closeSync(fd)
    }
  }

  /** Uptime of the host; `NaN` if unknown, and then the first reading has no values. */
  #sinceBootTicks(): number {
    const bytes = this.#bytesOf(`${this.#procfs}/uptime`)
    if (bytes === undefined) return noTicks
    const scan = this.#scan.reset(bytes)
    return scan.line() ? scan.number() * ticksPerSecond : noTicks
  }
}

/** Negative if the first one uses more. */
function compare(a: Process, b: Process): number {
  return b.cpuPercent - a.cpuPercent || b.rssPages - a.rssPages
}
