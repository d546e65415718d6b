// One HTTP/1.1 request and its response, bounded in time and bytes.

import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Dialer, faultText } from './dialer.ts'
import { GatheredBytes } from './gathered-bytes.ts'

/** Why the response is missing or incomplete: timeout, stopped, connection lost, or too large. */
export class HttpFault extends Error {
  readonly why: 'late' | 'stopped' | 'lost' | 'large'
  /** It used a kept-alive connection, which the server seems to have closed at that moment. */
  readonly stale: boolean

  constructor(message: string, why: HttpFault['why'], more: { stale?: boolean; cause?: unknown } = {}) {
    super(message, { cause: more.cause })
    this.name = 'HttpFault'
    this.why = why
    this.stale = more.stale ?? false
  }
}

export interface HeadOptions {
  /** Until the head of the response, including the connection. Undefined: only `stop` limits it. */
  readonly timeoutMs?: number
  /** Aborts the request, and its response while it is read. */
  readonly stop?: AbortSignal
  readonly body?: string | Uint8Array
}

/**
 * Sends a request. Resolves with the head of the response, whatever its status; the caller must read or destroy its
 * body. Rejects with an `HttpFault`.
 */
export function headOf(
  call: ClientRequest,
  { timeoutMs, stop, body }: HeadOptions,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const end = (fault: HttpFault) => {
      // At once: a connection that is still being opened emits no event.
      reject(fault)
      call.destroy(fault)
    }
    const stopped = () => end(new HttpFault('the request was cancelled', 'stopped'))
    const late = () => end(new HttpFault(`no answer within ${timeoutMs} ms`, 'late'))
    const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs).unref()
    call.once('response', answer => {
      clearTimeout(timer)
      resolve(answer)
    })
    call.on('error', error =>
      reject(new HttpFault(lossText(error), 'lost', { stale: call.reusedSocket, cause: error })),
    )
    call.once('close', () => {
      clearTimeout(timer)
      stop?.removeEventListener('abort', stopped)
      // Closed without an error, as when the agent of kept connections is destroyed.
      reject(new HttpFault('the connection was lost', 'lost'))
    })
    stop?.addEventListener('abort', stopped)
    if (stop?.aborted) stopped()
    else call.end(body)
  })
}

/** Reads a response body. Rejects with an `HttpFault`, and closes the connection. `timeoutMs`: from now on. */
export async function bodyOf(answer: IncomingMessage, maxBytes: number, timeoutMs?: number): Promise<Buffer> {
  const { bytes, cut } = await startOf(answer, maxBytes, timeoutMs)
  if (cut) throw new HttpFault(`it is larger than ${maxBytes} bytes`, 'large')
  return bytes
}

/** The same, but returns the beginning of a body that is larger than `maxBytes`. */
export async function startOf(
  answer: IncomingMessage,
  maxBytes: number,
  timeoutMs?: number,
): Promise<{ readonly bytes: Buffer; readonly cut: boolean }> {
  const late = () => answer.destroy(new HttpFault('it does not end', 'late'))
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, Math.max(0, timeoutMs)).unref()
  const gathered = new GatheredBytes(maxBytes)
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      if (gathered.add(piece)) continue
      gathered.add(piece.subarray(0, maxBytes - gathered.bytes.length))
      return { bytes: gathered.bytes, cut: true }
    }
    return { bytes: gathered.bytes, cut: false }
  } catch (error) {
    if (error instanceof HttpFault) throw error
    throw new HttpFault(`it was cut off: ${faultText(error as Error)}`, 'lost', { cause: error })
  } finally {
    clearTimeout(timer)
    answer.destroy()
  }
}

/** Returns a `createConnection` that uses a dialer. */
export function dialed(dialer: Dialer) {
  return (_: unknown, ready: (error: Error | null, connection: never) => void): undefined => {
    dialer.dial().then(
      connection => ready(null, connection as never),
      (error: Error) => ready(error, undefined as never),
    )
  }
}

/** True if the response is not HTTP/1.1. */
export function isNoHttp({ code = '' }: NodeJS.ErrnoException): boolean {
  return code.startsWith('HPE_') && code !== 'HPE_HEADER_OVERFLOW'
}

function lossText(error: NodeJS.ErrnoException): string {
  return isNoHttp(error) ? 'it does not speak HTTP' : faultText(error)
}
