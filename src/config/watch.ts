import { contentStates } from '../foundation/lib/file-content.ts'

export interface WatchOptions {
  /** Absolute paths with the states of the contents that the agent knows (`contentState`). */
  readonly files: ReadonlyMap<string, string>
  /** Milliseconds between two looks. */
  readonly intervalMs: number
  /** How long new contents must stay as they are before they count, in milliseconds: a file may be half written. */
  readonly settleMs?: number
  /** Called once for each new state of the files, one that is gone included. Must not throw. */
  readonly changed: () => void
}

/**
 * Looks at the contents of files again and again. By contents, not times or inotify: that sees atomic renames, the
 * swapped symbolic links of a ConfigMap and files on network file systems alike, and a touched file is not a change.
 */
export class FileWatch {
  readonly #options: Required<WatchOptions>
  #known: ReadonlyMap<string, string>
  /** What the look before found, where it was not what is known. */
  #found: ReadonlyMap<string, string> | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  /** Begins to look after the first interval. The timer keeps no process alive. */
  constructor(options: WatchOptions) {
    this.#options = { settleMs: 1000, ...options }
    this.#known = options.files
    this.#arm(options.intervalMs)
  }

  /** Takes the files to look at from now on, with the states of contents that need no report. */
  acknowledge(files: ReadonlyMap<string, string>): void {
    this.#known = files
    this.#found = undefined
  }

  /** Looks now, as the timer does. Never rejects. */
  async look(): Promise<void> {
    clearTimeout(this.#timer)
    const { intervalMs, settleMs, changed } = this.#options
    const known = this.#known
    const states = await contentStates(known.keys())
    if (this.#stopped) return
    // Acknowledged meanwhile: what was read may be older than that.
    const settled = known !== this.#known || same(states, known)
    const report = !settled && this.#found !== undefined && same(states, this.#found)
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

function same(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  if (a.size !== b.size) return false
  for (const [path, state] of a) if (b.get(path) !== state) return false
  return true
}
