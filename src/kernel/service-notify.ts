// Reports the state to the service manager that started this process: sd_notify(3), without its library.

import { errorText, type Logger } from '../foundation/lib/logger.ts'
import { loadNative, Unsupported } from './native.ts'

/** State that is reported at every beat. */
export interface ServiceState {
  /** What runs and what does not, in one line. */
  status(): string
  /** Why the process no longer works; undefined if it does. */
  stuck(): string | undefined
}

/** Maximum time between two checks of the state. */
const lookMs = 10_000
/** Delay before an unsent message is sent again. */
const againMs = 100
/** What `systemctl status` shows in full on a wide screen. */
const maxStatusBytes = 512

/**
 * A connection to the service manager. Does nothing without NOTIFY_SOCKET. Removes the protocol's variables from the
 * environment, so that child processes do not notify in its place. Never throws: a failure is logged, once.
 */
export class ServiceNotify {
  readonly #address: string | undefined
  readonly #watchdogMs: number | undefined
  readonly #log: Logger
  #state: ServiceState | undefined
  #beat: NodeJS.Timeout | undefined
  #status = ''
  #lookedMs = Number.NEGATIVE_INFINITY
  #wasStuck = false
  /** The last change of state, while it could not be sent. */
  #unsent: string | undefined
  #again: NodeJS.Timeout | undefined
  #refused = false

  constructor(log: Logger, env: NodeJS.ProcessEnv = process.env) {
    this.#log = log
    this.#address = env.NOTIFY_SOCKET || undefined
    this.#watchdogMs = watchdogMs(env)
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name]
  }

  /** The start is complete. From now on the manager gets `state`, and if it requests them, watchdog messages. */
  ready(state: ServiceState): void {
    if (this.#address === undefined) return
    this.#state = state
    // Not checked for stuck yet: work that a long start delayed runs first.
    this.#change('READY=1', ...this.#look(undefined))
    this.#beat = setInterval(() => this.#report(), Math.min(lookMs, (this.#watchdogMs ?? lookMs) / 2)).unref()
  }

  /** Runs a reload and reports it to the manager. */
  async reload<T>(attempt: () => Promise<T>): Promise<T> {
    if (this.#state === undefined) return attempt()
    this.#change('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
    try {
      return await attempt()
    } finally {
      // If the process is stopping by now, this would revoke it.
      if (this.#state !== undefined) this.#change('READY=1', ...this.#look(this.#state.stuck()))
    }
  }

  /** The process is stopping, within `boundMs`: extends a shorter timeout of the manager. */
  stopping(boundMs: number, status: string): void {
    this.#state = undefined
    clearInterval(this.#beat)
    this.#change(
      'STOPPING=1',
      `EXTEND_TIMEOUT_USEC=${Math.ceil(boundMs * 1000)}`,
      `STATUS=${oneLine(status)}`,
    )
  }

  /** Nothing is reported any more. */
  close(): void {
    this.#state = undefined
    clearInterval(this.#beat)
    clearTimeout(this.#again)
  }

  #report(): void {
    const stuck = this.#state?.stuck()
    this.#noteStuck(stuck)
    const due = performance.now() - this.#lookedMs >= lookMs || stuck !== undefined
    const lines = [
      ...(this.#watchdogMs !== undefined && stuck === undefined ? ['WATCHDOG=1'] : []),
      ...(due ? this.#look(stuck) : []),
    ]
    if (lines.length === 0 || this.#send(lines.join('\n'))) return
    // There was no room: it is sent again at the next beat.
    this.#lookedMs = Number.NEGATIVE_INFINITY
    this.#status = ''
  }

  #noteStuck(stuck: string | undefined): void {
    if (stuck !== undefined && !this.#wasStuck && this.#watchdogMs !== undefined)
      this.#log.error('the agent is stuck; the service manager restarts it unless it recovers', {
        reason: stuck,
        watchdog_ms: this.#watchdogMs,
      })
    this.#wasStuck = stuck !== undefined
  }

  /** The status line, if it has changed. */
  #look(stuck: string | undefined): string[] {
    this.#lookedMs = performance.now()
    const status = oneLine(stuck === undefined ? (this.#state?.status() ?? '') : `stuck: ${stuck}`)
    if (status === this.#status) return []
    this.#status = status
    return [`STATUS=${status}`]
  }

  /** Sends a message that must arrive in time, unless a later change replaces it. */
  #change(...lines: readonly string[]): void {
    clearTimeout(this.#again)
    this.#unsent = lines.join('\n')
    if (this.#send(this.#unsent)) {
      this.#unsent = undefined
      return
    }
    // A later change may replace it, along with the status.
    this.#status = ''
    this.#again = setTimeout(() => this.#change(this.#unsent!), againMs).unref()
  }

  /** False: there was no room; retry soon. */
  #send(text: string): boolean {
    if (this.#address === undefined) return true
    const native = loadNative()
    try {
      if (native instanceof Unsupported) throw new Error(`${native.reason}; ${native.hint}`)
      return native.sendDatagram(this.#address, Buffer.from(text))
    } catch (error) {
      if (!this.#refused)
        this.#log.warn('cannot report the state of svc to the service manager', {
          error: errorText(error),
          hint: 'set Type=exec and remove WatchdogSec= in the unit, or fix the socket named by NOTIFY_SOCKET',
        })
      this.#refused = true
      return true
    }
  }
}

/** The manager's watchdog timeout; undefined if it does not watch this process. */
function watchdogMs({
  NOTIFY_SOCKET,
  WATCHDOG_USEC = '',
  WATCHDOG_PID,
}: NodeJS.ProcessEnv): number | undefined {
  if (!NOTIFY_SOCKET || (WATCHDOG_PID && WATCHDOG_PID !== `${process.pid}`)) return undefined
  const ms = /^\d{1,18}$/.test(WATCHDOG_USEC) ? Number(WATCHDOG_USEC) / 1000 : 0
  // A value beyond a timer's range is no watchdog.
  return ms >= 2 && ms < 2 ** 31 ? ms : undefined
}

/** A line break would start another assignment. */
function oneLine(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim()
  if (Buffer.byteLength(line) <= maxStatusBytes) return line
  // Drops a truncated character.
  return `${Buffer.from(line)
    .subarray(0, maxStatusBytes - 3)
    .toString()
    .replace(/\uFFFD+$/, '')}…`
}
