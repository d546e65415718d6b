// A reporter for node:test that passes each result as a line of JSON to the test runner.
import { writeSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { TestEvent } from 'node:test/reporters'
import { inspect } from 'node:util'

/** The descriptor of these lines: a pipe to the runner. */
export const channel = 3
const mostErrorChars = 20_000

/** Reports of a worker about its files, in this order: begin, tests, file, end. */
export type WorkerLine =
  | { readonly kind: 'begin'; readonly file: string }
  | {
      readonly kind: 'test'
      /** Names of its suites and its own, joined by ` > `. */
      readonly name: string
      readonly ms: number
      readonly result: Result
      /** Why it was skipped or failed; empty if it passed. */
      readonly reason: string
    }
  /** An event outside of all tests. */
  | { readonly kind: 'late'; readonly text: string }
  /** All tests of a file have ended. `reason`: why the file itself could not be run. */
  | { readonly kind: 'file'; readonly file: string; readonly ms: number; readonly reason: string }
  /**
   * Nothing of a file is running any more. `faults`: what it left behind in the process. `cpuMs`: including its ended
   * children.
   */
  | {
      readonly kind: 'end'
      readonly file: string
      readonly faults: readonly string[]
      readonly cpuMs: number
      /** Facts of svc that it reached: reached.ts. */
      readonly reached: readonly string[]
    }

export type Result = 'passed' | 'failed' | 'skipped'

export function say(line: WorkerLine): void {
  writeSync(channel, `${JSON.stringify(line)}\n`)
}

const kinds: ReadonlySet<unknown> = new Set(['begin', 'test', 'late', 'file', 'end'])

/**
 * The other end of the channel. `odd`: text that is not a line of a worker, because a test may write to any descriptor.
 */
export function readLines(
  channel: Readable,
  take: (line: WorkerLine) => void,
  odd: (text: string) => void,
): void {
  let rest = ''
  channel.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const said = parsed(line)
      if (said === undefined) odd(line)
      else take(said)
    }
  })
}

function parsed(line: string): WorkerLine | undefined {
  try {
    const said = JSON.parse(line) as WorkerLine | null
    return kinds.has(said?.kind) ? said! : undefined
  } catch {
    return undefined
  }
}

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  /** Names of the running suites by depth: the prefix of a test's name. */
  const around: string[] = []
  for await (const { type, data } of source) {
    if (type === 'test:start') around[data.nesting] = data.name
    if (type === 'test:diagnostic' && /asynchronous activity/.test(data.message))
      say({ kind: 'late', text: data.message })
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const { nesting, name, details, skip } = data
    const ms = Math.round(details.duration_ms)
    const reason = type === 'test:fail' ? reasonOf(data.details.error) : ''
    if (nesting === 0) say({ kind: 'file', file: name, ms, reason: isOfSubtests(reason) ? '' : reason })
    else if (reason === '' ? details.type !== 'suite' || skip !== undefined : !isOfSubtests(reason))
      say({
        kind: 'test',
        name: printable([...around.slice(1, nesting), name].join(' > ')),
        ms,
        result: type === 'test:fail' ? 'failed' : skip === undefined ? 'passed' : 'skipped',
        reason: type === 'test:fail' ? reason : typeof skip === 'string' ? skip : '',
      })
  }
  yield ''
}

function printable(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, each => JSON.stringify(each).slice(1, -1))
}

/** It failed only because tests in it did, which were reported. */
function isOfSubtests(reason: string): boolean {
  return /^\d+ subtests? failed$/.test(reason)
}

function reasonOf(error: Error & { failureType?: string }): string {
  if (error.failureType === 'subtestsFailed') return error.message
  const text = inspect(error.cause ?? error)
  return text.length <= mostErrorChars ? text : `${text.slice(0, mostErrorChars)} [...]`
}
