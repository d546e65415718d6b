// What a test file reaches of svc, observed in the process of the tests: answers of its servers, its own metrics with
// values other than zero, exit codes, and log lines. test/spec/reached.json lists which file reaches what.
import type { ChildProcess } from 'node:child_process'
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'

/** Limit for reading pages and logs. */
const mostChars = 4_000_000
/** A running agent, rather than a registry that a test fills. */
const ofAgents = /^(?:test\/e2e|src\/program\/(?:agent|subsystems|documents))\//
const svcProgram = /(?:^|[/\s])(?:dist\/svc\.cjs|bin\/svc|src\/main\.ts)(?=\s|$)/

/** Answers to requests that a test writes byte by byte: an Exchange. */
export const rawAnswers = channel('svc.test.raw-answer')
/** Pages that a test renders from the input of collectors. */
export const hostPages = channel('svc.test.host-page')

/** Facts reached since the last call of `take`: `GET /status 200`, `exit 2`, `metric svc_…`, `host node_…`, `log …`. */
export class Reached {
  readonly #facts = new Set<string>()
  readonly #messages: readonly string[]

  /** `messages`: prefixes of log lines to look for. */
  constructor(messages: readonly string[]) {
    this.#messages = messages
    subscribe('http.client.response.finish', this.#onResponse)
    subscribe('child_process', this.#onChild)
    rawAnswers.subscribe(this.#onResponse)
    hostPages.subscribe(this.#onHostPage)
  }

  close(): void {
    unsubscribe('http.client.response.finish', this.#onResponse)
    unsubscribe('child_process', this.#onChild)
    rawAnswers.unsubscribe(this.#onResponse)
    hostPages.unsubscribe(this.#onHostPage)
  }

  take(): string[] {
    const facts = [...this.#facts].sort()
    this.#facts.clear()
    return facts
  }

  readonly #onResponse = (message: unknown): void => {
    const { request, response } = message as Exchange
    const { headers, statusCode } = response
    // Headers of every answer of svc, and of no other server used by tests.
    if (headers['cache-control'] !== 'no-store' || headers['x-content-type-options'] !== 'nosniff') return
    const path = request.path.split('?')[0]!
    const type = headers['content-type'] ?? ''
    this.#facts.add(`${isOfHost(path, type) ? 'endpoint ' : ''}${request.method} ${path} ${statusCode}`)
    this.#facts.add(`status ${statusCode}`)
    if (path !== '/metrics' || statusCode !== 200 || !ofAgents.test(process.env.TEST_FILE ?? '')) return
    tap(response, isOfHost(path, type) ? this.#onHostPage : text => this.#readPage(text))
  }

  #readPage(text: string): void {
    for (const [, name] of text.matchAll(/^(svc_\w+)(?:\{.*\})? (?!0$)/gm))
      this.#facts.add(`metric ${name!.replace(/_(?:bucket|count|sum)$/, '')}`)
  }

  readonly #onHostPage = (text: unknown): void => {
    for (const [, name] of String(text).matchAll(/^(node_\w+)(?:\{.*\})? \S/gm)) {
      this.#facts.add(`host ${name}`)
      if (/_(?:count|sum)$/.test(name!)) this.#facts.add(`host ${name!.replace(/_(?:count|sum)$/, '')}`)
    }
  }

  readonly #onChild = (message: unknown): void => {
    const child = (message as { process: ChildProcess }).process
    // Its pipes and arguments are set after the event.
    queueMicrotask(() => this.#watch(child))
  }

  #watch(child: ChildProcess): void {
    if (!svcProgram.test((child.spawnargs ?? []).join(' '))) return
    child.once('exit', code => {
      if (code !== null) this.#facts.add(`exit ${code}`)
    })
    if (child.stderr !== null)
      tap(child.stderr, text => {
        for (const message of this.#messages) if (text.includes(message)) this.#facts.add(`log ${message}`)
      })
  }
}

interface Exchange {
  readonly request: ClientRequest
  readonly response: IncomingMessage
}

/** Whether this is the endpoint of host metrics, rather than the management API. */
function isOfHost(path: string, type: string): boolean {
  return (
    /^\/(?:metrics\/description|health|live)$/.test(path) ||
    (path === '/ready' && type.startsWith('text/plain')) ||
    (path === '/metrics' && type === 'text/plain; version=0.0.4; charset=utf-8') ||
    (path === '/' && type === 'text/html; charset=UTF-8')
  )
}

/** Passes on the content of a stream at its end, invisibly to its reader. */
function tap(stream: Readable, use: (text: string) => void): void {
  const chunks: (string | Buffer)[] = []
  let length = 0
  const push = stream.push
  stream.push = function (this: Readable, chunk: string | Buffer | null, ...rest: []): boolean {
    if (chunk === null) use(chunks.map(String).join(''))
    else if (length < mostChars) {
      length += chunk.length
      chunks.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk))
    }
    return push.call(this, chunk, ...rest)
  }
}
