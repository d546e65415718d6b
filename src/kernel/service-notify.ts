// Tells the service manager that started this process how it is: sd_notify(3), without its library.

import { errorText, type Logger } from '../foundation/lib/logger.ts'
import { loadNative, Unsupported } from './native.ts'

/** What a manager is told at every beat. */
export interface ServiceState {
  /** What runs and what does not, in one line. */
  status(): string
  /** Why the process no longer does its work; undefined where it does. */
  stuck(): string | undefined
}

/** Longest time between two looks at the state. */
const lookMs = 10_000
/** When that which found no room is sent again. */
const againMs = 100
/** What `systemctl status` shows in full on a wide screen. */
const maxStatusBytes = 512

/**
 * A connection to the service manager. Where nobody asked to be told, by NOTIFY_SOCKET, nothing is done. Takes the
 * variables of the protocol out of the environment, as what this process starts is not to answer in its place. Never
 * throws: what cannot be told is logged, once.
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

  /** The start is over. From now on the manager gets `state`, and where it asked for it a sign of life. */
  ready(state: ServiceState): void {
    if (this.#address === undefined) return
    this.#state = state
    // Not judged yet: what a long start kept waiting gets its turn now.
    this.#change('READY=1', ...this.#look(undefined))
    this.#beat = setInterval(() => this.#tell(), Math.min(lookMs, (this.#watchdogMs ?? lookMs) / 2)).unref()
  }

  /** Runs a reload, which the manager is told of. */
  async reload<T>(attempt: () => Promise<T>): Promise<T> {
    if (this.#state === undefined) return attempt()
    this.#change('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`)
    try {
      return await attempt()
    } finally {
      // Where the process ends by now, this would call that off.
      if (this.#state !== undefined) this.#change('READY=1', ...this.#look(this.#state.stuck()))
    }
  }

  /** The process ends, within `boundMs`: a manager that would wait less waits so long. */
  stopping(boundMs: number, status: string): void {
    this.#state = undefined
    clearInterval(this.#beat)
    this.#change(
      'STOPPING=1',
      `EXTEND_TIMEOUT_USEC=${Math.ceil(boundMs * 1000)}`,
      `STATUS=${oneLine(status)}`,
    )
  }

  /** Nothing is told any more. */
  close(): void {
    this.#state = undefined
    clearInterval(this.#beat)
    clearTimeout(this.#again)
  }

  #tell(): void {
    const stuck = this.#state?.stuck()
    this.#noteStuck(stuck)
    const due = performance.now() - this.#lookedMs >= lookMs || stuck !== undefined
    const lines = [
      ...(this.#watchdogMs !== undefined && stuck === undefined ? ['WATCHDOG=1'] : []),
      ...(due ? this.#look(stuck) : []),
    ]
    if (lines.length === 0 || this.#send(lines.join('\n'))) return
    // There was no room: it is told anew at the next beat.
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

  /** The line for the status, where it is another than the last one. */
  #look(stuck: string | undefined): string[] {
    this.#lookedMs = performance.now()
    const status = oneLine(stuck === undefined ? (this.#state?.status() ?? '') : `stuck: ${stuck}`)
    if (status === this.#status) return []
    this.#status = status
    return [`STATUS=${status}`]
  }

  /** Sends what must arrive, in time, unless a later change says more. */
  #change(...lines: readonly string[]): void {
    clearTimeout(this.#again)
    this.#unsent = lines.join('\n')
    if (this.#send(this.#unsent)) {
      this.#unsent = undefined
      return
    }
    // A later change may take its place, and the status with it.
    this.#status = ''
    this.#again = setTimeout(() => this.#change(this.#unsent!), againMs).unref()
  }

  /** False: there was no room, and there may be soon. */
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

/** What the manager waits for a sign of life; undefined where it waits for none of this process. */
function watchdogMs({
  NOTIFY_SOCKET,
  WATCHDOG_USEC = '',
  WATCHDOG_PID,
}: NodeJS.ProcessEnv): number | undefined {
  if (!NOTIFY_SOCKET || (WATCHDOG_PID && WATCHDOG_PID !== `${process.pid}`)) return undefined
  const ms = /^\d{1,18}$/.test(WATCHDOG_USEC) ? Number(WATCHDOG_USEC) / 1000 : 0
  // More than a timer takes is no watchdog.
  return ms >= 2 && ms < 2 ** 31 ? ms : undefined
}

/** A line break would begin another assignment. */
function oneLine(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, ' ').trim()
  if (Buffer.byteLength(line) <= maxStatusBytes) return line
  // A character that is cut in two is left out.
  return `${Buffer.from(line)
    .subarray(0, maxStatusBytes - 3)
    .toString()
    .replace(/\uFFFD+$/, '')}…`
}
