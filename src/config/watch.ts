import { contentStates } from '../foundation/lib/file-content.ts'
import { isSameMap } from '../foundation/lib/same-map.ts'

export interface WatchOptions {
  /** Absolute paths with the content states that the agent knows (`contentState`). */
  readonly files: ReadonlyMap<string, string>
  /** Milliseconds between two checks. */
  readonly intervalMs: number
  /** How long new content must stay unchanged before it counts, in milliseconds: a file may be half written. */
  readonly settleMs?: number
  /** Called once for each new state of the files, including a deletion. Must not throw. */
  readonly changed: () => void
}

/**
 * Polls the contents of files. Comparing contents, not times or inotify events, detects atomic renames, the swapped
 * symbolic links of a ConfigMap and files on network file systems alike, and ignores a touched file.
 */
export class FileWatch {
  readonly #options: Required<WatchOptions>
  #known: ReadonlyMap<string, string>
  /** Result of the previous check, if it differed from the known state. */
  #found: ReadonlyMap<string, string> | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  /** Checks first after one interval. The timer keeps no process alive. */
  constructor(options: WatchOptions) {
    this.#options = { settleMs: 1000, ...options }
    this.#known = options.files
    this.#arm(options.intervalMs)
  }

  /** Replaces the watched files, and their states that need no report. */
  acknowledge(files: ReadonlyMap<string, string>): void {
    this.#known = files
    this.#found = undefined
  }

  /** Checks now, as the timer does. Never rejects. */
  async look(): Promise<void> {
    clearTimeout(this.#timer)
    const { intervalMs, settleMs, changed } = this.#options
    const known = this.#known
    const states = await contentStates(known.keys())
    if (this.#stopped) return
    // Acknowledged during the read: its result may be older.
    const settled = known !== this.#known || isSameMap(states, known)
    const report = !settled && this.#found !== undefined && isSameMap(states, this.#found)
    this.#found = settled || report ? undefined : states
    if (report) this.#known = states
    this.#arm(this.#found === undefined ? intervalMs : settleMs)
    if (report) changed()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #arm(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.look(), ms).unref()
  }
}
