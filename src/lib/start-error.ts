/** Exit codes of every command. */
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
  0: 'good',
  1: 'general',
  2: 'configuration or usage',
  3: 'no eBPF though required',
  4: 'no permission',
  5: 'export failed',
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
