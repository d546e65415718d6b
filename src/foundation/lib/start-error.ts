import { causesOf } from './error-code.ts'

/** Exit codes of every command: the one table, which help and documents are made from. */
export const ExitCode = {
  ok: 0,
  general: 1,
  /** Configuration or usage. */
  usage: 2,
  /** eBPF is required and is not available. */
  ebpf: 3,
  /** A permission is missing. */
  permission: 4,
  /** A one-shot command could not export. */
  exporting: 5,
} as const
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

/** What each means, for help and documents. */
export const exitCodes: Readonly<Record<ExitCode, string>> = {
  0: 'ok',
  1: 'general',
  2: 'configuration or usage',
  3: 'eBPF required but unavailable',
  4: 'missing permission',
  5: 'export failed (one-shot commands)',
}

/** The code of what failed: a right that the system says is missing has its own, behind however many causes. */
export function exitCodeOf(error: unknown, otherwise: ExitCode = ExitCode.general): ExitCode {
  for (const at of causesOf(error)) {
    if (at instanceof StartError) return at.exitCode
    const code = at instanceof Error ? (at as NodeJS.ErrnoException).code : undefined
    if (code === 'EACCES' || code === 'EPERM') return ExitCode.permission
  }
  return otherwise
}

/** A reason not to start, whose message is for the person who started the program: it is shown without a stack. */
export class StartError extends Error {
  readonly exitCode: ExitCode
  constructor(message: string, exitCode: ExitCode, cause?: unknown) {
    super(message, { cause })
    this.name = 'StartError'
    this.exitCode = exitCode
  }
}
