import { createReadStream } from 'node:fs'
import { errorText } from '../../../foundation/lib/logger.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { type Signal, signals } from '../../../foundation/model/signal.ts'
import { jsonToRequest } from '../../../pipeline/exporters/otlp/from-json.ts'

/** An export request from the input. */
export interface InputRequest {
  readonly signal: Signal
  /** As protobuf. */
  readonly body: Uint8Array
  /** Line of its beginning, from 1. */
  readonly line: number
}

/** Limit for a line, or a document of many lines. */
const maxBytes = 64 * 1024 * 1024

const fields: Readonly<Record<Signal, string>> = {
  traces: 'resourceSpans',
  metrics: 'resourceMetrics',
  logs: 'resourceLogs',
  profiles: 'resourceProfiles',
}

/**
 * Reads OTLP JSON: one request per line, or one document of many lines. `-` is standard input. Throws a `StartError`
 * with the line and the expected input.
 */
export async function* requestsOf(path: string): AsyncGenerator<InputRequest> {
  const name = path === '-' ? 'standard input' : path
  for await (const { line, json } of documentsOf(path, name)) yield* requestsIn(json, name, line)
}

function* requestsIn(json: unknown, name: string, line: number): Generator<InputRequest> {
  const found = signals.filter(signal => isObject(json) && Object.hasOwn(json, fields[signal]))
  if (found.length === 0)
    throw fault(
      name,
      line,
      `expected an object with ${Object.values(fields)
        .join(', ')
        .replace(/,(?=[^,]*$)/, ' or')}`,
    )
  for (const signal of found) {
    let body: Uint8Array
    try {
      body = jsonToRequest(signal, json)
    } catch (error) {
      if (error instanceof RangeError) throw fault(name, line, error.message)
      throw error
    }
    yield { signal, body, line }
  }
}

function isObject(json: unknown): json is object {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

function fault(name: string, line: number, what: string): StartError {
  return new StartError(`cannot read ${name}, line ${line}: ${what}`, ExitCode.usage)
}

/** The JSON texts in the input. If the first line is not complete JSON, the whole input is one text. */
async function* documentsOf(
  path: string,
  name: string,
): AsyncGenerator<{ readonly line: number; readonly json: unknown }> {
  let begin: number | undefined
  let isWhole = false
  const parts: Buffer[] = []
  let bytes = 0
  for await (const { line, text: whole } of linesOf(path, name)) {
    const text = line === 1 ? withoutMark(whole) : whole
    if (begin === undefined && isBlank(text)) continue
    if (begin === undefined) {
      begin = line
      const json = parsed(text)
      isWhole = json === undefined
      if (json !== undefined) yield { line, json: json.value }
    } else if (!isWhole && !isBlank(text)) yield { line, json: parseAt(text, name, line) }
    if (!isWhole) continue
    parts.push(text, newline)
    bytes += text.length + 1
    if (bytes > maxBytes)
      throw fault(name, begin, 'a document larger than 64 MiB; write one request per line')
  }
  if (isWhole && begin !== undefined) yield { line: begin, json: parseAt(Buffer.concat(parts), name, begin) }
}

const newline = Buffer.from('\n')
const byteOrderMark = Buffer.from('\ufeff')

/** Some editors start texts with a byte order mark, which JSON forbids (RFC 8259, section 8.1). */
function withoutMark(text: Buffer): Buffer {
  return text.subarray(0, 3).equals(byteOrderMark) ? text.subarray(3) : text
}

function isBlank(text: Buffer): boolean {
  return text.every(byte => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

function parsed(text: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text.toString()) }
  } catch {
    return undefined // the caller reads on, or reports the error
  }
}

function parseAt(bytes: Buffer, name: string, begin: number): unknown {
  const text = bytes.toString()
  try {
    return JSON.parse(text)
  } catch (error) {
    throw fault(
      name,
      begin + linesBefore(text, errorText(error)),
      'expected OTLP JSON, found text that is not JSON',
    )
  }
}

/** Number of lines before the parser's error, as far as it reports a position. */
function linesBefore(text: string, message: string): number {
  const position = / at position (\d+)/.exec(message)?.[1]
  if (position === undefined && !message.includes('end of JSON input')) return 0
  return (
    text
      .slice(0, Number(position ?? text.length))
      .trimEnd()
      .split('\n').length - 1
  )
}

/** Lines without their ends, numbered from 1. */
async function* linesOf(
  path: string,
  name: string,
): AsyncGenerator<{ readonly line: number; readonly text: Buffer }> {
  const source = path === '-' ? process.stdin : createReadStream(path)
  let parts: Buffer[] = []
  let bytes = 0
  let line = 1
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      let from = 0
      for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
        parts.push(chunk.subarray(from, end))
        yield { line, text: Buffer.concat(parts) }
        line++
        parts = []
        bytes = 0
        from = end + 1
      }
      parts.push(chunk.subarray(from))
      bytes += chunk.length - from
      if (bytes > maxBytes) throw fault(name, line, 'longer than 64 MiB')
    }
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`cannot read ${name}: ${errorText(error)}`, ExitCode.usage, error)
  }
  yield { line, text: Buffer.concat(parts) }
}
