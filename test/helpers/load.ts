import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Program } from './program.ts'
import { soak } from './soak.ts'
import { client, type SpanLine, server, type Telemetry } from './telemetry.ts'
import type { Shop } from './web-servers.ts'

/** How many requests a load makes: all of them in a soak. */
export const requests = soak ? 10_000 : 600
export const concurrency = 50

/** A request of the load and what must be told of it. */
export interface Planned {
  readonly method: string
  readonly path: string
  readonly route: string
  readonly query: string
  readonly status: number
  /** Bytes of the bodies; the answer's where all shops agree. */
  readonly sent: number
  readonly answered: number | undefined
}

/** Five kinds of requests in turn, no two with the same path. */
export function plan(count: number, shop: Shop): Planned[] {
  const nginx = shop.service === 'nginx'
  return Array.from({ length: count }, (_, i): Planned => {
    const got = { method: 'GET', query: '', sent: 0 }
    const item = { path: `/items/${i}`, route: '/items/*', status: 200, answered: nginx ? 20 : i % 3000 }
    if (i % 5 === 0) return { ...got, ...item }
    if (i % 5 === 1) return { ...got, ...item, query: 'page=2' }
    if (i % 5 === 2)
      return { ...item, method: 'PUT', query: '', status: 201, sent: (i * 7) % 5000, answered: 0 }
    if (i % 5 === 3) return { ...got, path: `/fail/${i}`, route: '/fail/*', status: 500, answered: 7 }
    // What is not there has no route of its own.
    return { ...got, path: `/missing/${i}`, route: '/*/*', status: 404, answered: 9 }
  })
}

/** A client of its own process, with many connections. */
export class Buyer {
  readonly pid: number
  readonly service: string
  readonly planned: readonly Planned[]
  readonly #program: Program<object>
  readonly #directory: string

  private constructor(
    program: Program<object>,
    service: string,
    planned: readonly Planned[],
    directory: string,
  ) {
    this.#program = program
    this.pid = program.pid
    this.service = service
    this.planned = planned
    this.#directory = directory
  }

  static async start(
    kind: 'node' | 'python',
    shop: Shop,
    planned: readonly Planned[],
    keepAlive: boolean,
  ): Promise<Buyer> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-buyer-'))
    const file = join(directory, 'plan.json')
    const lines = planned.map(({ method, path, query, sent }) => {
      return { method, path: query === '' ? path : `${path}?${query}`, sent }
    })
    writeFileSync(file, JSON.stringify(lines))
    const options = { port: shop.port, file, concurrency, keepAlive }
    const script = kind === 'node' ? 'buyer-node.ts' : 'buyer-python.py'
    return new Buyer(await Program.start<object>(script, options), `buyer-${kind}`, planned, directory)
  }

  /** Opens all connections, by one request each. */
  async open(): Promise<void> {
    await this.#program.ask('open')
  }

  async go(): Promise<void> {
    assert.equal(await this.#program.ask('go'), this.planned.length)
  }

  async close(): Promise<void> {
    await this.#program.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** Checks that each request of a buyer has exactly one span on each side, both right in every detail, and joined. */
export function checkSpans(telemetry: Telemetry, shop: Shop, buyer: Buyer): void {
  const { planned } = buyer
  const served = byPath(telemetry.spans(shop.port, server))
  const asked = byPath(telemetry.spans(shop.port, client))
  assert.equal(telemetry.spans(shop.port, server).length, planned.length)
  assert.equal(telemetry.spans(shop.port, client).length, planned.length)
  for (const entry of planned) {
    const ofServer = served.get(entry.path)
    const ofClient = asked.get(entry.path)
    assert.ok(ofServer !== undefined && ofClient !== undefined, `no span of ${entry.path} on both sides`)
    checkServer(ofServer, entry, shop)
    checkClient(ofClient, entry, shop, buyer)
    assert.equal(ofServer.traceId, ofClient.traceId, entry.path)
    assert.equal(ofServer.parentSpanId, ofClient.spanId, entry.path)
    assert.equal(ofClient.parentSpanId, '')
    assert.equal(ofServer.flags & 0x300, 0x300, 'it is known that the parent is in another process')
    assert.ok(BigInt(ofClient.startNs) <= BigInt(ofServer.startNs), `${entry.path}: a child starts later`)
    assert.ok(BigInt(ofServer.endNs) <= BigInt(ofClient.endNs), `${entry.path}: a child ends earlier`)
  }
  const ids = new Set([...served.values(), ...asked.values()].map(({ spanId }) => spanId))
  assert.equal(ids.size, 2 * planned.length, 'span ids are distinct')
}

function checkServer(span: SpanLine, entry: Planned, shop: Shop): void {
  const { attributes, resource } = span
  const { method, path, route, query, status, sent, answered } = entry
  const what = `${method} ${path} at ${shop.service}`
  assert.equal(span.name, `${method} ${route}`, what)
  const error = status >= 500 ? { 'error.type': String(status) } : {}
  assert.equal(span.status, status >= 500 ? 2 : 0, what)
  const port = attributes['network.peer.port']
  const agent = attributes['user_agent.original']
  assert.deepEqual(
    attributes,
    {
      'http.request.method': method,
      'url.scheme': 'http',
      'url.path': path,
      ...(query !== '' && { 'url.query': query }),
      'http.route': route,
      'server.address': '127.0.0.1',
      'server.port': shop.port,
      'client.address': '127.0.0.1',
      ...(agent !== undefined && { 'user_agent.original': agent }),
      'http.response.status_code': status,
      ...error,
      'network.protocol.version': '1.1',
      'network.peer.address': '127.0.0.1',
      'network.peer.port': port,
      'http.request.body.size': sent,
      'http.response.body.size': answered,
    },
    what,
  )
  assert.ok(Number(port) > 0 && port !== shop.port, what)
  assert.equal(resource['service.name'], shop.service)
  assert.ok(shop.pids.includes(Number(resource['process.pid'])))
}

function checkClient(span: SpanLine, entry: Planned, shop: Shop, buyer: Buyer): void {
  const { attributes, resource } = span
  const { method, path, query, status, sent, answered } = entry
  const what = `${method} ${path} by ${buyer.service}`
  assert.equal(span.name, method, what)
  assert.equal(span.status, status >= 400 ? 2 : 0, what)
  assert.deepEqual(
    attributes,
    {
      'http.request.method': method,
      'server.address': '127.0.0.1',
      'server.port': shop.port,
      'url.full': `http://127.0.0.1:${shop.port}${path}${query === '' ? '' : `?${query}`}`,
      'http.response.status_code': status,
      ...(status >= 400 && { 'error.type': String(status) }),
      'network.protocol.version': '1.1',
      'network.peer.address': '127.0.0.1',
      'network.peer.port': shop.port,
      'http.request.body.size': sent,
      'http.response.body.size': answered,
    },
    what,
  )
  assert.equal(resource['service.name'], buyer.service)
  assert.equal(resource['process.pid'], buyer.pid)
}

/** Spans by their path, which stands for one request. */
function byPath(spans: readonly SpanLine[]): Map<string, SpanLine> {
  const found = new Map<string, SpanLine>()
  for (const span of spans) {
    const { attributes } = span
    const path = String(attributes['url.path'] ?? new URL(String(attributes['url.full'])).pathname)
    assert.ok(!found.has(path), `${path} has more than one span of kind ${span.kind}`)
    found.set(path, span)
  }
  return found
}

/** Checks that both sides counted exactly what was asked, in series of exactly these methods, routes and statuses. */
export function checkCounts(telemetry: Telemetry, shop: Shop, buyer: Buyer): void {
  const { planned } = buyer
  assert.equal(telemetry.servedBy(...shop.pids), planned.length)
  assert.equal(telemetry.askedOf(shop.port), planned.length)
  const want = new Map<string, number>()
  for (const { method, route, status } of planned) {
    const key = `${method} ${route} ${status}`
    want.set(key, (want.get(key) ?? 0) + 1)
  }
  const got = new Map<string, number>()
  const series = telemetry.counted(
    ({ metric, resource }) =>
      metric === 'http.server.request.duration' && shop.pids.includes(Number(resource['process.pid'])),
  )
  for (const { attributes, count } of series) {
    const key = `${attributes['http.request.method']} ${attributes['http.route']} ${attributes['http.response.status_code']}`
    got.set(key, (got.get(key) ?? 0) + count)
  }
  assert.deepEqual(got, want)
}

const execute = promisify(execFile)

/** Runs a program to its end. Returns its standard output. */
export async function output(command: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute(command, args, { maxBuffer: 64 << 20, encoding: 'latin1' })
  return stdout
}
