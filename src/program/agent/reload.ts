// Takes up a changed configuration while the agent runs: all of it, or nothing.

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

/** Contents of the files that keys name, by path (`contentState`). */
export function contentsOf(loaded: LoadedConfig): Promise<Map<string, string>> {
  return contentStates(contentFiles(loaded).values())
}

/** A part of the agent that can change while it runs. */
export interface Reloadable {
  /** For messages. */
  readonly name: string
  /**
   * Makes ready what `after` asks for, without effect yet; undefined where there is nothing to do. Throws, in words,
   * where it cannot be done. `after` is what will run: keys that wait for a restart have their old values. `changed`
   * holds every key that differs, and those that name a file with new content although the name is the same.
   */
  prepare(after: Config, changed: ReadonlySet<string>): Change | undefined | Promise<Change | undefined>
}

/** How a reload ended. Keys are named without values, in the order of the schema, and once for each place in the file. */
export type ReloadOutcome =
  | {
      readonly kind: 'applied'
      /** In effect now. */
      readonly changed: readonly string[]
      /** Differ from what runs, and wait for a restart. */
      readonly restart: readonly string[]
      /** Changed, and this version does nothing with them. */
      readonly ignored: readonly string[]
      readonly hash: string
    }
  | { readonly kind: 'unchanged'; readonly restart: readonly string[]; readonly hash: string }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] }
  /** `partial`: a part broke its word and failed in the middle of the change; else nothing has changed. */
  | { readonly kind: 'failed'; readonly part: string; readonly error: string; readonly partial: boolean }
  /** `key` switches it off; '' while the agent ends. */
  | { readonly kind: 'off'; readonly key: string }

/** What became of the reloads so far. Times are milliseconds since the epoch; the start counts as the first success. */
export interface ReloadState {
  readonly lastSuccessful: boolean
  readonly lastSuccessMs: number
  readonly lastAttemptMs: number
  /** Attempts, without those that were switched off. */
  readonly reloads: number
  /** How many of them were refused or failed. */
  readonly failures: number
  /** Of the configuration that was taken up last (`LoadedConfig.hash`). */
  readonly hash: string
  /** Why the last attempt failed; '' where it did not, and then the next two are, too. */
  readonly lastError: string
  /** `FILE:LINE:COLUMN` of what was wrong first, or the file alone. */
  readonly place: string
  readonly hint: string
  readonly requiresRestart: readonly string[]
}

export interface ReloaderOptions {
  /** What runs. */
  readonly loaded: LoadedConfig
  /**
   * `contentsOf` it, begun before any part reads these files: what changes later is a change. No reload begins before
   * this is there.
   */
  readonly contents: Promise<ReadonlyMap<string, string>>
  /** Loads the configuration again, as at the start. */
  readonly load: () => LoadedConfig
  /** Asked in this order. */
  readonly parts: readonly Reloadable[]
  readonly log: Logger
  /** Runs every attempt, whoever asked for it; what it returns is the outcome. */
  readonly around?: (cause: ReloadCause, attempt: () => Promise<ReloadOutcome>) => Promise<ReloadOutcome>
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** See `FileWatch`. */
  readonly settleMs?: number
  /** Longest time that one part may prepare, in milliseconds: one that hangs must not end all reloads. */
  readonly prepareMs?: number
}

/** More that wait share a run of the same cause, which has not begun and so will read what they mean. */
const maxWaiting = 16

const hotReload = 'pipeline.operations.hot_reload'

/** Characters of a reason that are kept: a mistyped key may be as long as the file. */
const mostTold = 4000

const good = { lastError: '', place: '', hint: '' } as const

/**
 * Runs reloads one after another, and looks at the files whose contents make up the configuration. In a reload the
 * configuration is read and checked, compared with what runs, and every part prepares; only when all are ready do all
 * of them change, within one turn of the event loop.
 */
export class Reloader {
  readonly #options: Required<ReloaderOptions>
  #current: LoadedConfig
  #state: ReloadState
  /** Contents of the files that keys name, by path, as the parts last took them up. */
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

  /** What runs: the file, with the old values of keys that wait for a restart. */
  get current(): LoadedConfig {
    return this.#current
  }

  get state(): ReloadState {
    return this.#state
  }

  /** Takes up what the files say now. Waits for reloads that were asked for before. Never rejects. */
  reload(cause: ReloadCause): Promise<ReloadOutcome> {
    // One of another cause may be switched off where this one is not.
    const shared =
      this.#waiting.length < maxWaiting ? undefined : this.#waiting.findLast(one => one.cause === cause)
    if (shared) return shared.run
    const run = this.#last.then(() => {
      void this.#waiting.shift()
      return this.#options.around(cause, () => this.#attempt(cause))
    })
    this.#waiting.push({ cause, run })
    // Should one fail by a fault of its own, its caller learns of it, and the next one runs all the same.
    this.#last = run.catch(() => undefined)
    return run
  }

  /** No change begins or takes effect from now on. */
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
    // Read before the configuration: what changes in between is then a change that the next look sees.
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
      // Whatever came of it: the same is not tried again until it changes.
      await this.#lookAt(files, contents, sentinel)
    }
  }

  /** Keys that name the same file as before, with another content. */
  #renewed(next: LoadedConfig, contents: ReadonlyMap<string, string>): string[] {
    const named = contentFiles(this.#current)
    return [...contentFiles(next)]
      .filter(([key, path]) => named.get(key) === path && contents.get(path) !== this.#contents.get(path))
      .map(([key]) => key)
  }

  /** Lets all parts change, or none; `current` tells which. Answers what went wrong. */
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
      // It may still become ready, when nobody waits for it any more.
      preparing.then(
        change => change?.abort(),
        () => undefined,
      )
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Looks for changes of these from now on, as `current` wants it. */
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

/** The file that is looked at in place of the configuration, where there is one. */
function sentinelOf({ config, filePath }: LoadedConfig): string[] {
  const { config_path } = config.pipeline.operations.hot_reload
  const path = config_path === '' ? null : resolve(config_path)
  return path === null || path === filePath ? [] : [path]
}

/**
 * Why the file that was loaded cannot be read again. To find out here keeps the loader from going on to another file or
 * to the defaults where this one is gone, and from waiting at a pipe.
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

/** A reload reads the file that was read before: to go over to another is a matter of a restart. Where there was none, one may come. */
function strays(before: LoadedConfig, after: LoadedConfig): Problem[] {
  if (before.file === null || before.filePath === after.filePath) return []
  const other = after.file === null ? 'the defaults would apply' : `${after.file} would apply`
  return [problemWith(before.file, `${other} instead; restart svc to change to it`)]
}

const maxNamed = 8

/** One sentence for the log and for who asked. */
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
