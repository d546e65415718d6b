// What a test file reaches of svc, as seen from the process of the tests: answers of its servers, its own metrics that were
// other than zero, codes that it ended with, and lines of its log. test/spec/reached.json says which file reaches what.
import type { ChildProcess } from 'node:child_process'
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'

/** Pages and logs are looked at as far as this. */
const mostChars = 4_000_000
/** Of a running agent, rather than of a registry that a test fills. */
const ofAgents = /^(?:test\/e2e|src\/program\/(?:agent|subsystems|documents))\//
const svcProgram = /(?:^|[/\s])(?:dist\/svc\.cjs|bin\/svc|src\/main\.ts)(?=\s|$)/

/** Answers to requests that a test writes byte by byte: an Exchange. */
export const rawAnswers = channel('svc.test.raw-answer')
/** Pages that a test makes of what collectors read. */
export const hostPages = channel('svc.test.host-page')

/** What was reached since the last call of `take`: `GET /status 200`, `exit 2`, `metric svc_…`, `host node_…`, `log …`. */
export class Reached {
  readonly #facts = new Set<string>()
  readonly #messages: readonly string[]

  /** `messages`: beginnings of lines of the log that are looked for. */
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
    // What every answer of svc carries, and of no other server that tests ask.
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
    // Its pipes are made, and its arguments known, after it is announced.
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

/** Whether the metrics of the host are served there, rather than the management API. */
function isOfHost(path: string, type: string): boolean {
  return (
    /^\/(?:metrics\/description|health|live)$/.test(path) ||
    (path === '/ready' && type.startsWith('text/plain')) ||
    (path === '/metrics' && type === 'text/plain; version=0.0.4; charset=utf-8') ||
    (path === '/' && type === 'text/html; charset=UTF-8')
  )
}

/** Gives what a stream had when it ends. Who reads it sees nothing of that. */
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
