// Notes of this run in svc's own directory, from which the next one learns how it ended.

import { closeSync, constants, fstatSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from '../../foundation/lib/build.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import { textOfFile } from '../../foundation/lib/optional-files.ts'
import { makeOwnDirectory, readOwnFile } from '../../foundation/lib/own-directory.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import { type RunCause, runCauses } from '../../foundation/model/run-cause.ts'
import { reportFatalErrors, takeFatalReport } from './fatal-report.ts'
import { judgeLastRun, type LastRun, type RunNotes, type SupervisorReport } from './last-run.ts'

/** Interval of updating the notes. */
const noteMs = 10_000
const mostBytes = 4096
const mostDetail = 200
/** The largest time of a `Date` (ECMA-262, 21.4.1.1). */
const latestMs = 8.64e15
/** Where `svc-probe --ended` writes the report of systemd. */
const endedFile = 'ended'

/** Never throws: an agent works without it. */
export class RunRecord {
  /** Undefined: this is the first run, or the previous one is unknown. */
  readonly last: LastRun | undefined
  /** Ended runs by cause. */
  readonly ends: Readonly<Partial<Record<RunCause, number>>> = {}
  readonly #path: string
  #notes: RunNotes
  #ticks: Ticks | undefined
  #isWriting = false
  #isEnded = false

  /** Reads the notes of the previous run, logs how it ended, and starts new ones. */
  constructor(directory: string, log: Pick<Logger, 'warn'>) {
    this.#path = join(directory, 'run.json')
    const group = controlGroup()
    this.#notes = {
      pid: process.pid,
      startTicks: startTicksOf(process.pid),
      bootId: proc('sys/kernel/random/boot_id').trim(),
      version: build().version,
      startedMs: Date.now(),
      seenMs: Date.now(),
      ...group,
      end: undefined,
      ends: {},
    }
    try {
      makeOwnDirectory(directory)
      const before = readNotes(this.#path)
      if (before !== undefined && this.#runs(before)) {
        log.warn('run record not written: another svc uses the same directory', {
          pid: before.pid,
          directory,
          hint: 'set a different pipeline.export.queue.directory for each svc',
        })
        return
      }
      if (before !== undefined) {
        const supervisor = supervisorWord(join(directory, endedFile))
        const fatal = takeFatalReport(directory)
        this.last = judgeLastRun(before, { bootId: this.#notes.bootId, ...group, supervisor, fatal })
        this.ends = { ...before.ends, [this.last.cause]: (before.ends[this.last.cause] ?? 0) + 1 }
        this.#notes = { ...this.#notes, ends: this.ends }
      }
      this.#writeNow()
      reportFatalErrors(directory)
      this.#ticks = every(noteMs, () => this.#note())
    } catch (error) {
      log.warn('cannot write the run record; the next run will not know how this one ended', {
        reason: errorText(error),
        directory,
        hint: 'set pipeline.export.queue.directory to a directory that svc can write to',
      })
    }
    if (this.last?.ended === 'fault') {
      const { reason, hint, cause, atMs, uptimeSeconds, version } = this.last
      log.warn(`last run ended abnormally: ${reason}`, {
        ...{ cause, at: new Date(atMs).toISOString(), uptime_seconds: uptimeSeconds, version },
        ...(hint === '' ? {} : { hint }),
      })
    }
  }

  /** This run stops intentionally. The first call counts. */
  end(cause: RunCause, detail = ''): void {
    if (this.#isEnded || this.#ticks === undefined) return
    this.#isEnded = true
    this.#ticks.stop()
    this.#notes = { ...this.#notes, seenMs: Date.now(), end: { cause, detail: ownText(detail, mostDetail) } }
    try {
      this.#writeNow()
    } catch {
      // The next run reports an unknown end.
    }
  }

  /** Whether the process that wrote the notes still runs. */
  #runs({ pid, startTicks, bootId: boot, end }: RunNotes): boolean {
    if (end !== undefined || boot !== this.#notes.bootId) return false
    return startTicks > 0 && startTicksOf(pid) === startTicks
  }

  #writeNow(): void {
    const draft = `${this.#path}.new`
    writeFileSync(draft, JSON.stringify(this.#notes), { mode: 0o600 })
    renameSync(draft, this.#path)
  }

  #note(): void {
    if (this.#isWriting || this.#isEnded) return
    // Earlier OOM kills in the group did not end this run.
    this.#notes = { ...this.#notes, ...controlGroup(), seenMs: Date.now() }
    this.#isWriting = true
    const draft = `${this.#path}.next`
    writeFile(draft, JSON.stringify(this.#notes), { mode: 0o600 })
      // The end was written in the meantime.
      .then(() => (this.#isEnded ? undefined : rename(draft, this.#path)))
      .catch(() => undefined)
      .finally(() => {
        this.#isWriting = false
      })
  }
}

/** The notes, if svc or root wrote them; undefined if they are missing or invalid. */
function readNotes(path: string): RunNotes | undefined {
  const text = readOwnFile(path, mostBytes)
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const of = value as Readonly<Record<string, unknown>>
  const number = (name: string) => (typeof of[name] === 'number' && Number.isFinite(of[name]) ? of[name] : 0)
  const text_ = (name: string) => (typeof of[name] === 'string' ? of[name] : '')
  if (number('pid') <= 0 || number('startedMs') <= 0) return undefined
  const end = of.end as { cause?: unknown; detail?: unknown } | undefined
  const cause = runCauses.find(each => each === end?.cause)
  const ends: Partial<Record<RunCause, number>> = {}
  const counts = (of.ends ?? {}) as Readonly<Record<string, unknown>>
  for (const each of runCauses) if (Number.isSafeInteger(counts[each])) ends[each] = counts[each] as number
  return {
    ...{ pid: number('pid'), startTicks: number('startTicks'), bootId: text_('bootId') },
    ...{ version: text_('version'), startedMs: number('startedMs') },
    seenMs: Math.min(latestMs, Math.max(0, number('seenMs'))),
    ...{ cgroup: text_('cgroup'), oomKills: typeof of.oomKills === 'number' ? of.oomKills : -1 },
    end: cause === undefined ? undefined : { cause, detail: String(end?.detail ?? '').slice(0, mostDetail) },
    ends,
  }
}

function supervisorWord(path: string): SupervisorReport | undefined {
  const text = readOwnFile(path, mostBytes)
  const [, result = '', code = '', status = ''] =
    /^([a-z-]{1,32}) ([a-z]{1,32}) ([A-Z0-9]{1,32})\n$/.exec(text ?? '') ?? []
  if (result === '') return undefined
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  try {
    return { result, code, status, atMs: fstatSync(fd).mtimeMs }
  } finally {
    closeSync(fd)
  }
}

/** 0: no such process, or no /proc. */
function startTicksOf(pid: number): number {
  const text = proc(`${pid}/stat`)
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? 0) || 0
}

/** The kernel's name of this process's control group, and the number of OOM kills in it. */
function controlGroup(): { readonly cgroup: string; readonly oomKills: number } {
  const lines = proc('self/cgroup').split('\n')
  const v1 = lines.find(line => /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:/.test(line))
  const line = v1 ?? lines.find(each => each.startsWith('0::')) ?? ''
  const cgroup = line.split(':').slice(2).join(':')
  const [kind, file] = v1 === undefined ? ['cgroup2', 'memory.events'] : ['cgroup', 'memory.oom_control']
  for (const mount of proc('self/mounts').split('\n')) {
    const [, at = '', type = '', options = ''] = mount.split(' ')
    if (type !== kind || (v1 !== undefined && !options.split(',').includes('memory'))) continue
    // In a cgroup namespace, the root of the mount is the group itself.
    for (const folder of [join(at, cgroup), at]) {
      const found = /^oom_kill (\d+)$/m.exec(textOfFile(join(folder, file)))?.[1]
      if (found !== undefined) return { cgroup, oomKills: Number(found) }
    }
  }
  return { cgroup, oomKills: -1 }
}

function proc(name: string): string {
  return textOfFile(`/proc/${name}`)
}
