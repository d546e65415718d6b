// owns: ports, load
import assert from 'node:assert/strict'
import { Agent, get, type IncomingMessage } from 'node:http'
import { get as getInside, Agent as SecureAgent } from 'node:https'
import { after, afterEach, before, test } from 'node:test'
import { AgentProcess } from '../../helpers/agent-process.ts'
import { makeCertificates } from '../../helpers/certificates.ts'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import type { Line, ReceivedSample } from '../../helpers/otlp-items.ts'
import { type Receiver, startReceiver } from '../../helpers/otlp-receiver.ts'
import { Program, until } from '../../helpers/program.ts'
import { soak } from '../../helpers/soak.ts'

const kernel = { skip: withoutBpf }
/** Samples that decide how many of them have a link. */
const enough = soak ? 3000 : 300

let receiver: Receiver
/** What was sampled before is not looked at. */
let sinceMs = 0
const open: { close(): Promise<unknown> }[] = []
const sockets = { keepAlive: true, maxSockets: 4 }
const clients = new Agent(sockets)
const secureClients = new SecureAgent({ ...sockets, rejectUnauthorized: false })

before(async () => {
  receiver = await startReceiver({ keep: true, maxMessageBytes: 64 << 20 })
})
after(() => receiver.close())
afterEach(async () => {
  clients.destroy()
  secureClients.destroy()
  for (const one of open.splice(0).reverse()) await one.close()
  receiver.lines.splice(0)
})

/** A server that burns CPU in functions named as its paths, and the agent with profiles once a second. */
async function observed(script: string, options = {}): Promise<number> {
  const server = await Program.start(script, options)
  open.push(server)
  const agent = await AgentProcess.start({
    endpoint: receiver.endpoint,
    ports: [server.ready.port],
    config: { agent: { profiling: { enabled: true, sample_rate: 997, interval: '1s' } } },
  })
  open.push({ close: () => agent.stop() })
  return server.ready.port
}

function ask(port: number, path: string, secure: boolean): Promise<void> {
  const to = { port, host: '127.0.0.1', path }
  return new Promise((resolve, reject) => {
    const read = (response: IncomingMessage) => response.resume().on('end', resolve)
    const request = secure
      ? getInside({ ...to, agent: secureClients }, read)
      : get({ ...to, agent: clients }, read)
    request.on('error', reject)
  })
}

interface Linked {
  readonly name: string
  readonly spanId: string
  readonly traceId: string
}

/** Samples of the two functions, by what they are linked to. */
function samples(): Linked[] {
  const found: Linked[] = []
  for (const line of receiver.lines) {
    if (line.signal !== 'profiles' || Number(line.startNs) / 1e6 < sinceMs) continue
    for (const { frames, spanId, traceId } of line.samples as ReceivedSample[]) {
      const name = frames.find(frame => frame.name === 'heavy' || frame.name === 'light')?.name
      if (name !== undefined) found.push({ name, spanId, traceId })
    }
  }
  return found
}

/** Spans of servers by their ids. */
function spans(): Map<string, Line> {
  const server = 2
  return new Map(
    receiver.lines
      .filter(({ signal, kind }) => signal === 'traces' && kind === server)
      .map(span => [`${span.traceId} ${span.spanId}`, span]),
  )
}

/** Asks again and again over four connections until there are enough samples of the time since spans are made. */
async function load(port: number, paths: readonly string[], secure = false): Promise<void> {
  let asking = true
  const loops = paths.map(async path => {
    while (asking) await ask(port, path, secure)
  })
  sinceMs = Number.POSITIVE_INFINITY
  try {
    await until('spans are here', 30_000, () => spans().size > 0)
    sinceMs = Date.now()
    await until(
      () => `${enough} samples of the server are here; so far ${samples().length}`,
      60_000,
      () => samples().length >= enough,
    )
  } finally {
    asking = false
    await Promise.all(loops)
  }
}

/** Every link leads to the span of a request for what its sample was at work on. Returns which part has one. */
async function checkLinks(): Promise<number> {
  const linked = () => samples().filter(({ spanId }) => spanId !== '')
  const unknown = () => linked().filter(({ traceId, spanId }) => !spans().has(`${traceId} ${spanId}`))
  // Of a request under way the link is told before its span is.
  await until(
    () => `spans are here of all that is linked, and ${unknown().length} are not`,
    20_000,
    () => unknown().length === 0,
  )
  const byId = spans()
  for (const { name, traceId, spanId } of linked()) {
    const attributes = byId.get(`${traceId} ${spanId}`)!.attributes as Record<string, unknown>
    assert.match(String(attributes['url.path']), new RegExp(`^/${name}/`))
  }
  return linked().length / samples().length
}

test('samples of threads that wait in their calls have the span of their request', kernel, async () => {
  const port = await observed('burner.py')
  await load(port, ['/heavy/60', '/light/5', '/heavy/40', '/light/3'])
  const part = await checkLinks()
  assert.ok(part > 0.8, `${part} of the samples are linked`)
})

test('the same inside TLS', kernel, async () => {
  const certificates = makeCertificates()
  open.push({ close: async () => certificates.remove() })
  const [certificate, key] = [certificates.file('server.pem'), certificates.file('server.key')]
  const port = await observed('burner.py', { certificate, key })
  await load(port, ['/heavy/60', '/light/5', '/heavy/40', '/light/3'], true)
  const part = await checkLinks()
  // A client whose TLS is not read yet is waited for, longer than until the next profile.
  assert.ok(part > 0.3, `${part} of the samples are linked`)
})

test('samples of an event loop that has one request have its span', kernel, async () => {
  const port = await observed('burner-node.ts')
  await load(port, ['/heavy/60'])
  const part = await checkLinks()
  assert.ok(part > 0.5, `${part} of the samples are linked`)
})

test('samples of an event loop that has several requests have no span of another one', kernel, async () => {
  const port = await observed('burner-node.ts')
  await load(port, ['/heavy/30', '/light/20/later', '/heavy/20/later', '/light/30'])
  await checkLinks()
})
