// Bodies of requests. Few operations accept one: an unexpected body is rejected with a reason, not ignored.

import type { IncomingMessage } from 'node:http'
import { type Answer, failure } from './answer.ts'

export interface ReadOptions {
  /** Bytes to read at most. */
  readonly most: number
  /** Bytes to keep at most. */
  readonly keep: number
}

/**
 * Reads a body to its end and reports its size and content once, or a size above `most`. A body that is too large is
 * read for a while before it is rejected: closing a connection with unread bytes resets it, and the peer would lose the
 * answer.
 */
export function readBody(
  request: IncomingMessage,
  { most, keep }: ReadOptions,
  done: (size: number, kept: Buffer) => void,
): void {
  let size = 0
  let over = false
  let kept: Buffer[] = []
  const finish = () => {
    const whole = size <= keep ? Buffer.concat(kept) : Buffer.alloc(0)
    kept = []
    done(size, whole)
  }
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= keep) kept.push(chunk)
    else kept = []
    if (size > most && !over) {
      over = true
      finish()
    }
  })
  request.on('end', () => over || finish())
  // The peer closed the connection or broke the framing; 'clientError' answers if it can.
  request.on('error', () => undefined)
}

const jsonType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/**
 * The error if the body of a POST that takes none is not empty or an object without keys; undefined if it is.
 * `target`: method and path, for the message.
 */
export function bodyFault(target: string, request: IncomingMessage, body: Buffer): Answer | undefined {
  if (body.length === 0) return undefined
  const value = readJson(target, request, body, {
    form: 'no body, or {} with Content-Type: application/json',
    what: 'no body, or an object without keys',
  })
  if ('fault' in value) return value.fault
  const [key] = Object.keys(value.object)
  if (key === undefined) return undefined
  const name = key.slice(0, 64)
  return failure(400, `cannot ${target}: unexpected key "${name}"; send no body`, { key: name })
}

/** The object in the body of a POST, or an error. */
export function bodyObject(target: string, request: IncomingMessage, body: Buffer): BodyObject {
  const what = 'a JSON object'
  return readJson(target, request, body, { form: `${what} with Content-Type: application/json`, what })
}

export type BodyObject = { readonly object: Readonly<Record<string, unknown>> } | { readonly fault: Answer }

function readJson(
  target: string,
  { headers }: IncomingMessage,
  body: Buffer,
  { form, what }: { readonly form: string; readonly what: string },
): BodyObject {
  if (!jsonType.test(headers['content-type'] ?? '') || headers['content-encoding'] !== undefined)
    return { fault: failure(415, `cannot ${target}: send ${form}`) }
  const text = body.toString()
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const position = faultPosition(text)
    const why = `the body is not valid JSON, see character ${position + 1}`
    return { fault: failure(400, `cannot ${target}: ${why}`, { position }) }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: failure(400, `cannot ${target}: send ${what}`) }
  return { object: value as Record<string, unknown> }
}

/** Position of the first character that is not JSON, from 0. The runtime reports it only for some faults. */
function faultPosition(text: string): number {
  let good = 0
  let bad = text.length + 1
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    if (mayGoOn(text.slice(0, middle))) good = middle
    else bad = middle
  }
  return good
}

/** Whether the text is a prefix of valid JSON. */
function mayGoOn(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const { message } = error as Error
    const position = / at position (\d+)/.exec(message)?.[1]
    return position === undefined ? / end of JSON/.test(message) : Number(position) >= text.length
  }
}
