import type { RefusedFile } from '../lib/foreign-file.ts'

const maxWarned = 100

/** What is said to whoever operates the agent about logs that cannot be followed as they should be; each once. */
export class LogWarnings {
  private readonly warn: (message: string, hint: string) => void
  private readonly warned = new Set<string>()

  constructor(warn: (message: string, hint: string) => void) {
    this.warn = warn
  }

  manyOpen(most: number): void {
    this.once(
      'open',
      `more than ${most} log files grow at the same time, so they are opened and closed by turns`,
      'nothing to do, if the CPU time is well; else name fewer files in agent.logs.paths',
    )
  }

  /** `over`: what a look left out. */
  over(source: string, over: string): void {
    this.once(
      `over ${source}`,
      `not all log files are followed: a look leaves out ${over}, of those who have most`,
      'name fewer files or directories in agent.logs.paths',
    )
  }

  pattern(pattern: string, fault: string): void {
    this.once(
      `pattern ${pattern}`,
      `no log file is meant by "${pattern}": ${fault}`,
      'correct agent.logs.paths',
    )
  }

  manyFiles(most: number): void {
    this.once(
      'files',
      `not all log files are followed: there are more than ${most}, and who has most is left out first`,
      'name fewer files in agent.logs.paths',
    )
  }

  held(point: string): void {
    this.once(
      `held ${point}`,
      `logs on ${point} are not read: its file system does not answer, or is of another user or namespace`,
      'reading continues when the file system answers again; otherwise remove them from agent.logs.paths',
    )
  }

  unreadable(path: string): void {
    this.once(
      'unreadable',
      `cannot open the log ${path}`,
      'let the agent read it, and raise its limit of open files where that is below 2,000',
    )
  }

  refused({ message, hint }: RefusedFile): void {
    this.once(`refused ${message}`, message, hint)
  }

  /** `packed`: the file that it was compressed to; '' where it is gone. */
  lost(path: string, packed: string): void {
    const why = packed === '' ? 'it was removed or moved away' : `it was compressed to ${packed}`
    this.once(
      `lost ${packed === ''}`,
      `a rotated file of ${path} could not be read to its end: ${why} before that`,
      'have the rotation keep the newest files as they are (logrotate: delaycompress, and a larger rotate count)',
    )
  }

  failed(what: string, error: unknown): void {
    this.once('failed', `cannot follow ${what}: ${(error as Error).message}`, 'report this as a fault of svc')
  }

  private once(key: string, message: string, hint: string): void {
    if (this.warned.has(key) || this.warned.size >= maxWarned) return
    this.warned.add(key)
    this.warn(message, hint)
  }
}
