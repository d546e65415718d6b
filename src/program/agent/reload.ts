// Applies a changed configuration at run time: all of it, or nothing.

import { resolve } from 'node:path'
import {
  asWritten,
  type Config,
  changedKeys,
  contentFiles,
  contentState,
  contentStates,
  FileWatch,
  formatProblems,
  keeping,
  type LoadedConfig,
  noSuchFile,
  type Problem,
  problemWith,
  specialFile,
} from '../../config/index.ts'
import type { Change } from '../../foundation/lib/change.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import type { ReloadCause } from '../../view/api/types.ts'

/** Contents of the files named by keys, by path (`contentState`). */
export function contentsOf(loaded: LoadedConfig): Promise<Map<string, string>> {
  return contentStates(contentFiles(loaded).values())
}

/** A part of the agent that can change at run time. */
export interface Reloadable {
  /** For messages. */
  readonly name: string
  /**
   * Prepares `after`, without effect yet; undefined if there is nothing to do. Throws a readable error if it is
   * impossible. `after` is what will run: keys that need a restart keep their old values. `changed` has every key that
   * differs, including those that name a file with new content.
   */
  prepare(after: Config, changed: ReadonlySet<string>): Change | undefined | Promise<Change | undefined>
}

/** Result of a reload. Keys come without values, in the order of the schema, once for each place in the file. */
export type ReloadOutcome =
  | {
      readonly kind: 'applied'
      /** In effect now. */
      readonly changed: readonly string[]
      /** Differ from the running configuration, and take effect after a restart. */
      readonly restart: readonly string[]
      /** Changed, but unused in this version. */
      readonly ignored: readonly string[]
      readonly hash: string
    }
  | { readonly kind: 'unchanged'; readonly restart: readonly string[]; readonly hash: string }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] }
  /** `partial`: a part failed in the middle of the change, against its contract; otherwise nothing has changed. */
  | { readonly kind: 'failed'; readonly part: string; readonly error: string; readonly partial: boolean }
  /** Reloading is off: `key` controls it; '' while the agent stops. */
  | { readonly kind: 'off'; readonly key: string }

/** Reloads so far. Times are milliseconds since the epoch; the start counts as the first success. */
export interface ReloadState {
  readonly lastSuccessful: boolean
  readonly lastSuccessMs: number
  readonly lastAttemptMs: number
  /** Attempts, except those while reloading was off. */
  readonly reloads: number
  /** Rejected or failed attempts. */
  readonly failures: number
  /** Hash of the configuration applied last (`LoadedConfig.hash`). */
  readonly hash: string
  /** Why the last attempt failed; '' if it did not, and then the next two are empty too. */
  readonly lastError: string
  /** `FILE:LINE:COLUMN` of the first mistake, or only the file. */
  readonly place: string
  readonly hint: string
  readonly requiresRestart: readonly string[]
}

export interface ReloaderOptions {
  /** The running configuration. */
  readonly loaded: LoadedConfig
  /**
   * Its `contentsOf`, read before any part reads these files, so that later changes are detected. No reload starts
   * before it is complete.
   */
  readonly contents: Promise<ReadonlyMap<string, string>>
  /** Loads the configuration again, as at start. */
  readonly load: () => LoadedConfig
  /** Called in this order. */
  readonly parts: readonly Reloadable[]
  readonly log: Logger
  /** Wraps every attempt; its return value is the outcome. */
  readonly around?: (cause: ReloadCause, attempt: () => Promise<ReloadOutcome>) => Promise<ReloadOutcome>
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** See `FileWatch`. */
  readonly settleMs?: number
  /** Time limit for one part to prepare, in milliseconds: one that hangs must not block all reloads. */
  readonly prepareMs?: number
}

/** Further callers share a waiting run of the same cause, which has not read the configuration yet. */
const maxWaiting = 16

const hotReload = 'pipeline.operations.hot_reload'

/** Longest kept reason, in characters: a mistyped key may be as long as the file. */
const mostTold = 4000

const good = { lastError: '', place: '', hint: '' } as const

/**
 * Runs reloads one after another, and watches the files of the configuration. A reload reads and checks the
 * configuration, compares it with the running one, and lets every part prepare; only when all are ready do all of them
 * change, within one turn of the event loop.
 */
export class Reloader {
  readonly #options: Required<ReloaderOptions>
  #current: LoadedConfig
  #state: ReloadState
  /** Contents of the files named by keys, by path, as last applied. */
  #contents: ReadonlyMap<string, string> = new Map()
  #watch: FileWatch | undefined
  #watchIntervalMs = 0
  #stopped = false
  #last: Promise<unknown>
  readonly #waiting: { readonly cause: ReloadCause; readonly run: Promise<ReloadOutcome> }[] = []

  constructor(options: ReloaderOptions) {
    this.#options = {
      around: (_cause, attempt) => attempt(),
      now: Date.now,
      settleMs: 1000,
      prepareMs: 30_000,
      ...options,
    }
    const { loaded } = options
    this.#current = loaded
    const now = this.#options.now()
    this.#state = {
      lastSuccessful: true,
      lastSuccessMs: now,
      lastAttemptMs: now,
      reloads: 0,
      failures: 0,
      hash: loaded.hash,
      ...good,
      requiresRestart: [],
    }
    this.#last = this.#begin()
  }

  /** The running configuration: the file, with the old values of keys that need a restart. */
  get current(): LoadedConfig {
    return this.#current
  }

  get state(): ReloadState {
    return this.#state
  }

  /** Applies the current files. Waits for earlier reloads. Never rejects. */
  reload(cause: ReloadCause): Promise<ReloadOutcome> {
    // Reloading may be off for one cause and on for another.
    const shared =
      this.#waiting.length < maxWaiting ? undefined : this.#waiting.findLast(one => one.cause === cause)
    if (shared) return shared.run
    const run = this.#last.then(() => {
      void this.#waiting.shift()
      return this.#options.around(cause, () => this.#attempt(cause))
    })
    this.#waiting.push({ cause, run })
    // If a run fails because of a bug, its caller gets the error, and the next one still runs.
    this.#last = run.catch(() => undefined)
    return run
  }

  /** From now on no change starts or takes effect. */
  stop(): void {
    this.#stopped = true
    this.#watch?.stop()
  }

  async #begin(): Promise<void> {
    this.#contents = await this.#options.contents
    await this.#lookAt(this.#current.files, this.#contents, new Map())
  }

  async #attempt(cause: ReloadCause): Promise<ReloadOutcome> {
    const { log } = this.#options
    const key = this.#stopped ? '' : this.#switchedOff(cause)
    const outcome: ReloadOutcome = key === undefined ? await this.#run() : { kind: 'off', key }
    const message = reloadMessage(outcome)
    if (outcome.kind === 'off') {
      if (outcome.key !== '') log.warn(message, { cause })
      return outcome
    }
    const now = this.#options.now()
    const { reloads, failures } = this.#state
    this.#state = { ...this.#state, lastAttemptMs: now, reloads: reloads + 1, ...good }
    if (outcome.kind === 'invalid' || outcome.kind === 'failed') {
      this.#state = {
        ...this.#state,
        lastSuccessful: false,
        failures: failures + 1,
        lastError: message.slice(0, mostTold),
        place: outcome.kind === 'invalid' ? placeOf(outcome.problems) : (this.#current.file ?? ''),
        hint: hintOf(outcome),
      }
      log.error(message, {
        cause,
        ...(outcome.kind === 'invalid' ? { problems: lines(outcome.problems) } : {}),
      })
      return outcome
    }
    this.#state = { ...this.#state, lastSuccessful: true, lastSuccessMs: now }
    const routine = outcome.kind === 'unchanged' && cause === 'file'
    const attention = outcome.restart.length > 0 || (outcome.kind === 'applied' && outcome.ignored.length > 0)
    log[routine ? 'debug' : attention ? 'warn' : 'info'](message, { cause, hash: outcome.hash })
    return outcome
  }

  /** The key that forbids this reload. */
  #switchedOff(cause: ReloadCause): string | undefined {
    const { enabled, enable_sighup } = this.#current.config.pipeline.operations.hot_reload
    if (!enabled) return `${hotReload}.enabled`
    return cause === 'signal' && !enable_sighup ? `${hotReload}.enable_sighup` : undefined
  }

  async #run(): Promise<ReloadOutcome> {
    const before = this.#current
    let files = before.files
    let contents = this.#contents
    // Read before the configuration, so that a change in between is detected at the next check.
    const sentinel = await contentStates(sentinelOf(before))
    try {
      const unreadable = await whyUnreadable(before)
      if (unreadable.problem) {
        files = new Map([...files, ...unreadable.states])
        return { kind: 'invalid', problems: [unreadable.problem] }
      }
      const after = this.#options.load()
      files = new Map([...unreadable.states, ...after.files])
      const problems = after.problems.length > 0 ? after.problems : strays(before, after)
      if (problems.length > 0) return { kind: 'invalid', problems }
      const { live, restart, ignored } = changedKeys(before, after)
      const next = keeping(before, after, restart)
      contents = await contentsOf(next)
      const renewed = this.#renewed(next, contents)
      const changed = new Set([...live, ...ignored, ...renewed])
      const failure = await this.#apply(next, changed)
      if (this.#current !== next) return failure!
      this.#contents = contents
      const waiting = asWritten(restart, before, after)
      const news = changed.size > 0 || waiting.join() !== this.#state.requiresRestart.join()
      const { hash } = after
      this.#state = { ...this.#state, hash, requiresRestart: waiting }
      if (failure) return failure
      if (!news) return { kind: 'unchanged', restart: waiting, hash }
      return {
        kind: 'applied',
        changed: asWritten([...live, ...renewed], before, next),
        restart: waiting,
        ignored: asWritten(ignored, before, next),
        hash,
      }
    } catch (error) {
      return { kind: 'failed', part: 'configuration', error: errorText(error), partial: false }
    } finally {
      // Whatever the result: an unchanged file is not tried again.
      await this.#lookAt(files, contents, sentinel)
    }
  }

  /** Keys that name the same file with other content. */
  #renewed(next: LoadedConfig, contents: ReadonlyMap<string, string>): string[] {
    const named = contentFiles(this.#current)
    return [...contentFiles(next)]
      .filter(([key, path]) => named.get(key) === path && contents.get(path) !== this.#contents.get(path))
      .map(([key]) => key)
  }

  /** Changes all parts, or none; `current` shows which. Returns the failure. */
  async #apply(next: LoadedConfig, changed: ReadonlySet<string>): Promise<ReloadOutcome | undefined> {
    const ready: { readonly part: string; readonly change: Change }[] = []
    for (const part of changed.size > 0 ? this.#options.parts : []) {
      let failure: ReloadOutcome | undefined
      try {
        const change = await this.#prepared(part, next.config, changed)
        if (change) ready.push({ part: part.name, change })
        if (this.#stopped) failure = { kind: 'off', key: '' }
      } catch (error) {
        failure = { kind: 'failed', part: part.name, error: errorText(error), partial: false }
      }
      if (!failure) continue
      for (const { change } of ready.reverse()) change.abort()
      return failure
    }
    let failure: ReloadOutcome | undefined
    for (const { part, change } of ready) {
      try {
        change.commit()
      } catch (error) {
        failure ??= { kind: 'failed', part, error: errorText(error), partial: true }
      }
    }
    this.#current = next
    return failure
  }

  async #prepared(part: Reloadable, next: Config, changed: ReadonlySet<string>): Promise<Change | undefined> {
    const preparing = part.prepare(next, changed)
    if (!(preparing instanceof Promise)) return preparing
    const { prepareMs } = this.#options
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`not ready after ${prepareMs} ms`)), prepareMs).unref()
    })
    try {
      return await Promise.race([preparing, late])
    } catch (error) {
      // It may still become ready later, after the time limit.
      preparing.then(
        change => change?.abort(),
        () => undefined,
      )
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Watches these from now on, as configured in `current`. */
  async #lookAt(
    files: ReadonlyMap<string, string>,
    contents: ReadonlyMap<string, string>,
    sentinel: ReadonlyMap<string, string>,
  ): Promise<void> {
    const { config, filePath } = this.#current
    const { enabled, check_interval: intervalMs } = config.pipeline.operations.hot_reload
    const looked = new Map([...files, ...contents])
    for (const path of sentinelOf(this.#current)) {
      if (filePath !== null) looked.delete(filePath)
      looked.set(path, sentinel.get(path) ?? (await contentState(path)))
    }
    if (this.#watch && enabled && !this.#stopped && intervalMs === this.#watchIntervalMs) {
      this.#watch.acknowledge(looked)
      return
    }
    this.#watch?.stop()
    this.#watch = undefined
    if (!enabled || this.#stopped) return
    const changed = () => void this.reload('file')
    this.#watch = new FileWatch({ files: looked, intervalMs, settleMs: this.#options.settleMs, changed })
    this.#watchIntervalMs = intervalMs
  }
}

/** The file to watch instead of the configuration, if there is one. */
function sentinelOf({ config, filePath }: LoadedConfig): string[] {
  const { config_path } = config.pipeline.operations.hot_reload
  const path = config_path === '' ? null : resolve(config_path)
  return path === null || path === filePath ? [] : [path]
}

/**
 * Why the loaded file cannot be read again. Checking it here keeps the loader from falling back to another file or to
 * defaults, and from blocking on a pipe.
 */
async function whyUnreadable({
  file,
  filePath,
  once,
  files,
}: LoadedConfig): Promise<{ problem?: Problem; states: Map<string, string> }> {
  if (file === null || filePath === null) return { states: new Map() }
  const states = await contentStates([filePath])
  const state = states.get(filePath)
  const cause = once
    ? 'it was a pipe and cannot be read again'
    : state === noSuchFile
      ? 'no such file'
      : state === specialFile && files.get(filePath) !== specialFile
        ? 'not a regular file'
        : ''
  if (cause === '') return { states }
  return { problem: problemWith(file, `cannot read the configuration: ${cause}`), states }
}

/** A reload reads the same file as before; switching to another needs a restart. If there was none, one may appear. */
function strays(before: LoadedConfig, after: LoadedConfig): Problem[] {
  if (before.file === null || before.filePath === after.filePath) return []
  const other = after.file === null ? 'the defaults would apply' : `${after.file} would apply`
  return [problemWith(before.file, `${other} instead; restart svc to change to it`)]
}

const maxNamed = 8

/** One sentence for the log and the caller. */
export function reloadMessage(outcome: ReloadOutcome): string {
  switch (outcome.kind) {
    case 'applied': {
      const { changed, restart, ignored } = outcome
      const count = `${changed.length} key${changed.length === 1 ? '' : 's'} changed`
      const passive = restart.length + ignored.length > 0 ? 'no key took effect' : 'no keys pending a restart'
      const what = changed.length > 0 ? `${count} (${named(changed)})` : passive
      const unused = ignored.length > 0 ? `; not built in this version: ${named(ignored)}` : ''
      return `configuration reloaded: ${what}${waiting(restart)}${unused}`
    }
    case 'unchanged':
      return `configuration is unchanged${waiting(outcome.restart)}`
    case 'invalid':
      return `reload rejected: ${named(lines(outcome.problems), '; ')}; previous configuration still active`
    case 'failed': {
      const end = outcome.partial ? 'applied in part; restart svc' : 'previous configuration still active'
      return `cannot apply the configuration: ${outcome.part}: ${outcome.error}; ${end}`
    }
    case 'off':
      return outcome.key === ''
        ? 'cannot reload: the agent is stopping'
        : `cannot reload: ${outcome.key} is false; restart svc to apply a changed configuration`
  }
}

function placeOf([first]: readonly Problem[]): string {
  if (first === undefined) return ''
  return first.line > 0 ? `${first.where}:${first.line}:${first.column}` : first.where
}

function hintOf(outcome: Extract<ReloadOutcome, { kind: 'invalid' | 'failed' }>): string {
  if (outcome.kind === 'invalid')
    return 'fix the configuration (svc validate lists all errors), then reload: systemctl reload svc, or SIGHUP'
  return outcome.partial ? 'restart svc' : 'fix the error, then reload: systemctl reload svc, or SIGHUP'
}

function waiting(restart: readonly string[]): string {
  return restart.length > 0 ? `; needs a restart: ${named(restart)}` : ''
}

function named(all: readonly string[], between = ', '): string {
  const shown = all.slice(0, maxNamed).join(between)
  return all.length > maxNamed ? `${shown}${between}and ${all.length - maxNamed} more` : shown
}

function lines(problems: readonly Problem[]): string[] {
  return formatProblems(problems).trimEnd().split('\n')
}
