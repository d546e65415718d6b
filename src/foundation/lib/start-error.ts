import { causesOf } from './error-code.ts'

/** Exit codes of every command: the single table from which help and documents are generated. */
export const ExitCode = {
  ok: 0,
  general: 1,
  /** Configuration or usage. */
  usage: 2,
  /** eBPF is required but not available. */
  ebpf: 3,
  /** A permission is missing. */
  permission: 4,
  /** A one-shot command could not export. */
  exporting: 5,
} as const
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

/** Their meanings, for help and documents. */
export const exitCodes: Readonly<Record<ExitCode, string>> = {
  0: 'ok',
  1: 'general',
  2: 'configuration or usage',
  3: 'eBPF required but unavailable',
  4: 'missing permission',
  5: 'export failed (one-shot commands)',
}

/** The exit code for an error: a missing permission, anywhere among the causes, has its own. */
export function exitCodeOf(error: unknown, otherwise: ExitCode = ExitCode.general): ExitCode {
  for (const at of causesOf(error)) {
    if (at instanceof StartError) return at.exitCode
    const code = at instanceof Error ? (at as NodeJS.ErrnoException).code : undefined
    if (code === 'EACCES' || code === 'EPERM') return ExitCode.permission
  }
  return otherwise
}

/** A reason not to start, with a message for the person who started the program: shown without a stack. */
export class StartError extends Error {
  readonly exitCode: ExitCode
  constructor(message: string, exitCode: ExitCode, cause?: unknown) {
    super(message, { cause })
    this.name = 'StartError'
    this.exitCode = exitCode
  }
}
