// owns: ports
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess, largeRing } from '../helpers/agent-process.ts'
import { type Certificates, makeCertificates } from '../helpers/certificates.ts'
import { output } from '../helpers/load.ts'
import { freePort, Program, until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'
import { client, type SpanLine, server, Telemetry } from '../helpers/telemetry.ts'
import { withoutTracepoints, withTracefs } from '../helpers/tracefs.ts'
import { startNginx } from '../helpers/web-servers.ts'

const requests = soak ? 2000 : 60
const sockets = 3

/** Clients by GnuTLS. */
const without = (command: string): string | false =>
  spawnSync(command, ['--version']).status === 0 ? false : `${command} is needed`

let telemetry: Telemetry
let certificates: Certificates
const open: { close(): Promise<unknown> }[] = []

before(async () => {
  certificates = makeCertificates()
  telemetry = await Telemetry.start()
})
after(async () => {
  await telemetry.close()
  certificates.remove()
})
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
  telemetry.forget()
})

function closing<T extends { close(): Promise<unknown> }>(one: T): T {
  open.push(one)
  return one
}

interface Attachment {
  readonly path: string
  readonly inode: string
  readonly library: string
  readonly processes: number
  readonly attached: boolean
  readonly reason: string
}

async function attachments(agent: AgentProcess): Promise<readonly Attachment[]> {
  return (await agent.document<{ tls: readonly Attachment[] }>('/status/ebpf')).tls
}

/** `path`: a part of its own, or whole; another process may have come to the same file by another one. */
function isFile({ path: own, inode }: Attachment, path: string): boolean {
  if (own.includes(path)) return true
  const { dev, ino } = statSync(path, { throwIfNoEntry: false }) ?? { dev: 0, ino: 0 }
  return inode === `${dev}:${ino}`
}

/** The agent, once it reads the TLS of the programs in the files whose paths hold `paths`. */
function startAgent(port: number, ...paths: string[]): Promise<AgentProcess> {
  return startAgentBy('auto', [port], ...paths)
}

async function startAgentBy(
  backend: 'auto' | 'syscalls',
  ports: readonly number[],
  ...paths: string[]
): Promise<AgentProcess> {
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports,
    wrapper: backend === 'syscalls' ? withTracefs : [],
    config: { agent: { ebpf: { backend, ...largeRing } } },
  })
  open.push({ close: () => agent.stop() })
  await until(`TLS is read in ${paths.join()}`, 60_000, async () => {
    const all = await attachments(agent)
    return paths.every(path => all.some(each => each.attached && isFile(each, path)))
  })
  return agent
}

const startShop = async (script: string): Promise<Program> => {
  const files = { key: certificates.file('server.key'), cert: certificates.file('server.pem') }
  return closing(await Program.start(`../tls/${script}`, files))
}

const startBuyer = async (script: string, port: number): Promise<Program> =>
  closing(await Program.start(`../tls/${script}`, { port, sockets, ca: certificates.file('ca.pem') }))

/** What both sides have in common: paths, in order. */
function pathsOf(spans: readonly SpanLine[]): string[] {
  const path = ({ attributes }: SpanLine) =>
    String(attributes['url.path'] ?? new URL(String(attributes['url.full'])).pathname)
  return spans.map(path).sort()
}

const wanted = (count: number): string[] => Array.from({ length: count }, (_, i) => `/items/${i}`).sort()

function checkEnds(spans: readonly SpanLine[], port: number): void {
  for (const { attributes, status, kind } of spans) {
    assert.equal(attributes['http.response.status_code'], 200)
    assert.equal(status, 0)
    assert.equal(attributes['network.peer.address'], '127.0.0.1')
    assert.equal(attributes['server.address'], '127.0.0.1')
    if (kind === client) {
      assert.equal(attributes['network.peer.port'], port)
      assert.match(String(attributes['url.full']), /^https:/)
    } else {
      assert.equal(attributes['url.scheme'], 'https')
      assert.notEqual(attributes['network.peer.port'], port)
    }
  }
}

async function checkExact(shopScript: string, buyerScript: string): Promise<void> {
  const shop = await startShop(shopScript)
  const { port } = shop.ready
  const agent = await startAgent(port, 'libssl', process.execPath)
  const buyer = await startBuyer(buyerScript, port)
  await buyer.ask(`ask ${requests} /items/#`)
  await telemetry.arrived(2 * requests, port)
  await telemetry.settle(agent)
  const asked = telemetry.spans(port, client)
  const served = telemetry.spans(port, server)
  assert.deepEqual(pathsOf(asked), wanted(requests))
  assert.deepEqual(pathsOf(served), wanted(requests))
  checkEnds([...asked, ...served], port)
  const parents = new Set(asked.map(span => `${span.traceId} ${span.spanId}`))
  for (const { traceId, parentSpanId } of served) assert.ok(parents.has(`${traceId} ${parentSpanId}`))
}

test('every https request between Node.js programs has a span on each side, one the parent of the other', async () => {
  await checkExact('shop-node.ts', 'buyer-node.ts')
})

test('every https request of a Python client to a server of asyncio has a span on each side', async () => {
  await checkExact('shop-python.py', 'buyer-python.py')
})

test('every https request of a Node.js client to a server of asyncio has a span on each side', async () => {
  await checkExact('shop-python.py', 'buyer-node.ts')
})

/** Where a program carries its ciphertext itself, the first calls of a connection tell which socket it is. */
async function checkOlder(shopScript: string, buyerScript: string, missed: [number, number]): Promise<void> {
  const shop = await startShop(shopScript)
  const { port } = shop.ready
  const buyer = await startBuyer(buyerScript, port)
  await buyer.ask(`ask ${sockets} /earlier/1`)
  const agent = await startAgent(port, 'libssl', process.execPath)
  await buyer.ask(`ask ${requests} /items/#`)
  const [asked, served] = [requests - missed[0], requests - missed[1]]
  await telemetry.arrived(asked, port, client)
  await telemetry.arrived(served, port, server)
  await telemetry.settle(agent)
  for (const [spans, least] of [
    [telemetry.spans(port, client), asked],
    [telemetry.spans(port, server), served],
  ] as const) {
    const paths = pathsOf(spans)
    assert.ok(paths.length >= least && paths.length <= requests)
    assert.equal(new Set(paths).size, paths.length)
    checkEnds(spans, port)
  }
}

test('connections between Node.js programs that are older than the agent are seen after their first request', async () => {
  await checkOlder('shop-node.ts', 'buyer-node.ts', [sockets, 1])
})

test('a connection of Python that is older than the agent is seen: a client of sockets from its first request on', async () => {
  await checkOlder('shop-python.py', 'buyer-python.py', [0, 1])
})

test('curl by OpenSSL and wget by GnuTLS, for less than the time between scans, and nginx have their spans', {
  skip: without('wget'),
}, async () => {
  const [plain, port] = [await freePort(), await freePort()]
  closing(await startNginx(plain, port))
  const agent = await startAgent(port, 'libssl', 'libgnutls')
  const count = requests / 20
  const at = (path: string) => `https://127.0.0.1:${port}${path}`
  for (let i = 0; i < count; i++) {
    await output('curl', '-skf', '--http1.1', at(`/items/${i}`))
    await output('wget', '-q', '--no-check-certificate', '-O', '-', at(`/items/${count + i}`))
  }
  await telemetry.arrived(4 * count, port)
  await telemetry.settle(agent)
  const asked = telemetry.spans(port, client)
  const served = telemetry.spans(port, server)
  assert.deepEqual(pathsOf(asked), wanted(2 * count))
  assert.deepEqual(pathsOf(served), wanted(2 * count))
  checkEnds([...asked, ...served], port)
  const names = (name: string) => asked.filter(({ resource }) => resource['service.name'] === name).length
  assert.equal(names('curl'), count)
  assert.equal(names('wget'), count)
  for (const { resource } of served) assert.equal(resource['service.name'], 'nginx')
})

test('a request that gnutls-cli was given has its span', { skip: without('gnutls-cli') }, async () => {
  const [plain, port] = [await freePort(), await freePort()]
  closing(await startNginx(plain, port))
  const agent = await startAgent(port, 'libssl', 'libgnutls')
  const cli = spawn('gnutls-cli', ['--insecure', '-p', String(port), '127.0.0.1'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const ended = new Promise<void>(resolve => cli.once('close', () => resolve()))
  let said = ''
  cli.stdout.setEncoding('latin1').on('data', text => {
    said += text
  })
  await until('the handshake is done', 20_000, () => said.includes('Simple Client Mode'))
  cli.stdin.write(`GET /items/7 HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`)
  await ended
  await telemetry.arrived(2, port)
  await telemetry.settle(agent)
  assert.deepEqual(pathsOf(telemetry.spans(port, client)), ['/items/7'])
  assert.deepEqual(pathsOf(telemetry.spans(port, server)), ['/items/7'])
  assert.equal(telemetry.spans(port, client)[0]!.resource['service.name'], 'gnutls-cli')
})

test('by system calls every https request has a span and a count on each side, whoever carries the ciphertext', {
  skip: without('wget') || withoutTracepoints,
}, async () => {
  const [plain, secure] = [await freePort(), await freePort()]
  const nginx = closing(await startNginx(plain, secure))
  const [node, python] = [await startShop('shop-node.ts'), await startShop('shop-python.py')]
  const served = new Map([
    [secure, { pids: nginx.pids, count: 6 }],
    [node.ready.port, { pids: [node.pid], count: 2 * requests + 6 }],
    [python.ready.port, { pids: [python.pid], count: 2 * requests }],
  ])
  const agent = await startAgentBy('syscalls', [...served.keys()], 'libssl', 'libgnutls', process.execPath)
  const buyers: Program[] = []
  for (const shop of [node, python])
    for (const script of ['buyer-node.ts', 'buyer-python.py']) {
      const buyer = await startBuyer(script, shop.ready.port)
      await buyer.ask(`ask ${requests} /items/#`)
      buyers.push(buyer)
    }
  const at = (port: number, i: number) => `https://127.0.0.1:${port}/items/${i}`
  for (let i = 0; i < 3; i++) {
    await output('curl', '-skf', '--http1.1', at(secure, i))
    await output('wget', '-q', '--no-check-certificate', '-O', '-', at(secure, i))
    // Two requests of HTTP/2 over one connection.
    await output('curl', '-skfZ', '--http2', at(node.ready.port, 0), at(node.ready.port, 1))
  }
  for (const [port, { count }] of served) await telemetry.arrived(2 * count, port)
  await telemetry.settle(agent)
  for (const [port, { pids, count }] of served) {
    const [asked, answered] = [telemetry.spans(port, client), telemetry.spans(port, server)]
    assert.deepEqual([asked.length, answered.length], [count, count])
    assert.equal(telemetry.servedBy(...pids), count)
    // curl, which has all that it wants, resets a connection of HTTP/2 with what it did not read; whose that was Node.js
    // cannot be asked any more.
    const isWhole = ({ attributes }: SpanLine) => attributes['network.protocol.version'] !== '2'
    checkEnds([...asked, ...answered].filter(isWhole), port)
    const parents = new Set(asked.map(span => `${span.traceId} ${span.spanId}`))
    for (const { traceId, parentSpanId } of answered.filter(isWhole))
      assert.ok(parents.has(`${traceId} ${parentSpanId}`))
  }
  for (const { pid } of buyers) {
    const series = telemetry.counted(
      ({ metric, resource }) => metric === 'http.client.request.duration' && resource['process.pid'] === pid,
    )
    assert.equal(
      series.reduce((sum, { count }) => sum + count, 0),
      requests,
    )
  }
})
