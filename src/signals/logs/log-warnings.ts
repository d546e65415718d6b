import type { RefusedFile } from '../../foundation/lib/foreign-file.ts'

const maxWarned = 100

/** Warnings about logs that cannot be read as configured; each is logged once. */
export class LogWarnings {
  readonly #warn: (message: string, hint: string) => void
  readonly #warned = new Set<string>()

  constructor(warn: (message: string, hint: string) => void) {
    this.#warn = warn
  }

  manyOpen(most: number): void {
    this.#once(
      'open',
      `more than ${most} log files grow at the same time; svc opens them in turns`,
      'no action needed unless CPU usage is a problem; then list fewer files in agent.logs.paths',
    )
  }

  /** `over`: description of files that a scan left out. */
  over(source: string, over: string): void {
    this.#once(
      `over ${source}`,
      `some log files are not read: ${over} are left out, from the owners with the most files first`,
      'list fewer files or directories in agent.logs.paths',
    )
  }

  pattern(pattern: string, fault: string): void {
    this.#once(
      `pattern ${pattern}`,
      `invalid log path pattern "${pattern}": ${fault}`,
      'correct agent.logs.paths',
    )
  }

  manyFiles(most: number): void {
    this.#once(
      'files',
      `some log files are not read: there are more than ${most}; files of the owners with the most are left out first`,
      'list fewer files in agent.logs.paths',
    )
  }

  held(point: string): void {
    this.#once(
      `held ${point}`,
      `logs on ${point} are not read: the file system does not respond, or belongs to another user or namespace`,
      'svc resumes when the file system responds; otherwise remove them from agent.logs.paths',
    )
  }

  unreadable(path: string): void {
    this.#once(
      'unreadable',
      `cannot open log file ${path}`,
      'allow svc to read it, and raise its open file limit if that is below 2,000',
    )
  }

  refused({ message, hint }: RefusedFile): void {
    this.#once(`refused ${message}`, message, hint)
  }

  /** `packed`: the compressed file; '' if it was removed. */
  lost(path: string, packed: string): void {
    const why = packed === '' ? 'it was removed or moved away' : `it was compressed to ${packed}`
    this.#once(
      `lost ${packed === ''}`,
      `rotated file of ${path} not read to its end: ${why} first`,
      'keep the newest rotated files uncompressed (logrotate: delaycompress, and a larger rotate count)',
    )
  }

  failed(what: string, error: unknown): void {
    this.#once('failed', `cannot read ${what}: ${(error as Error).message}`, 'please report this bug in svc')
  }

  #once(key: string, message: string, hint: string): void {
    if (this.#warned.has(key) || this.#warned.size >= maxWarned) return
    this.#warned.add(key)
    this.#warn(message, hint)
  }
}
