// owns: host
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { afterEach, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { withoutBpf } from '../helpers/compile-bpf.ts'
import { type Receiver, startReceiver } from '../helpers/otlp-receiver.ts'
import { freePort, until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'
import { startPythonShop } from '../helpers/web-servers.ts'

const skip = withoutBpf
const connections = soak ? 10_000 : 300
const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

type Names = Readonly<Record<string, unknown>>
interface Point {
  readonly attributes: Names
  readonly startNs: string
  readonly timeNs: string
  readonly value?: number
  readonly count?: number
}

async function start(): Promise<{ receiver: Receiver; agent: AgentProcess }> {
  const receiver = await startReceiver({ keep: true })
  open.push(receiver)
  const agent = await AgentProcess.start({
    endpoint: receiver.endpoint,
    config: { agent: { ebpf: { network: { tcp_metrics: true, flows: true } } } },
  })
  open.push({ close: () => agent.stop() })
  return { receiver, agent }
}

/** What the series of a metric add up to at their last points: those for which `wanted` says yes. */
function total(
  receiver: Receiver,
  metric: string,
  wanted: (attributes: Names, resource: Names) => boolean,
): number {
  const last = new Map<string, { at: bigint; value: number }>()
  for (const line of receiver.lines) {
    if (line.signal !== 'metrics' || line.name !== metric) continue
    const resource = line.resource as Names
    for (const { attributes, startNs, timeNs, value, count } of line.points as Point[]) {
      if (!wanted(attributes, resource)) continue
      const id = JSON.stringify([resource, attributes, startNs])
      const at = BigInt(timeNs)
      if ((last.get(id)?.at ?? -1n) < at) last.set(id, { at, value: count ?? value ?? 0 })
    }
  }
  return [...last.values()].reduce((sum, { value }) => sum + value, 0)
}

/** Waits until so many are told, and checks that there are no more. */
async function isTold(what: string, counts: () => number[], want: readonly number[]): Promise<void> {
  await until(
    () => `the ${what} are told: ${counts()}`,
    60_000,
    () => counts().every((count, i) => count >= want[i]!),
  )
  assert.deepEqual(counts(), want)
}

/** A program that connects to itself so often, sends 100 bytes each time and gets 30; then it fails to connect twice. */
const talk = `
import os, socket, sys, threading
l = socket.create_server(('127.0.0.1', 0), backlog=128); port = l.getsockname()[1]; times = int(sys.argv[1])
def answer():
  for i in range(times):
    c, _ = l.accept()
    while c.recv(65536): pass
    c.sendall(b'y' * 30); c.close()
t = threading.Thread(target=answer); t.start()
for i in range(times):
  c = socket.create_connection(('127.0.0.1', port)); c.sendall(b'x' * 100); c.shutdown(socket.SHUT_WR)
  while c.recv(65536): pass
  c.close()
t.join(); l.close()
for i in range(2):
  try: socket.create_connection(('127.0.0.1', port))
  except ConnectionRefusedError: pass
print(port)`

test('connections are told exactly: how many, how long, how many bytes, and which failed', {
  skip,
}, async () => {
  const { receiver } = await start()
  const port = Number(execFileSync('python3', ['-c', talk, String(connections)], { encoding: 'utf8' }))
  const of =
    (side: string, more: Names = {}) =>
    (attributes: Names) =>
      Object.entries({ 'server.port': port, 'svc.network.side': side, ...more }).every(
        ([key, value]) => attributes[key] === value,
      )
  const opened = (side: string) => total(receiver, 'svc.network.tcp.connections.opened', of(side))
  await isTold('connections', () => [opened('client'), opened('server')], [connections, connections])
  const io = (side: string, direction: string) =>
    total(receiver, 'svc.network.connection.io', of(side, { 'network.io.direction': direction }))
  const bytes = () => [
    io('client', 'transmit'),
    io('client', 'receive'),
    io('server', 'transmit'),
    io('server', 'receive'),
  ]
  const [asked, answered] = [connections * 100, connections * 30]
  await isTold('bytes', bytes, [asked, answered, answered, asked])
  const refused = of('client', { 'error.type': 'connection_refused' })
  const attempts = () => [
    total(receiver, 'svc.network.tcp.connect.duration', of('client')),
    total(receiver, 'svc.network.tcp.connect.failures', refused),
  ]
  await isTold('attempts to connect', attempts, [connections, 2])
  // Both ends are on this host: each byte flows once.
  const flow = () => total(receiver, 'svc.network.flow.io', attributes => attributes['server.port'] === port)
  await isTold('bytes of the flow', () => [flow()], [asked + answered])
})

test('requests from one service to another are an edge of the service graph', { skip }, async () => {
  const { receiver } = await start()
  const port = await freePort()
  const shop = await startPythonShop(port)
  open.push(shop)
  const script = `
import sys, urllib.request
for i in range(25):
  try: urllib.request.urlopen('http://127.0.0.1:%s/nothing/%d' % (sys.argv[1], i)).read()
  except Exception: pass
sys.stdin.read() # a process that has gone before anybody looked has the name of its program`
  const buyer = spawn('python3', ['-c', script, String(port)], {
    env: { ...process.env, OTEL_SERVICE_NAME: 'graph-buyer' },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  const gone = new Promise(resolve => buyer.once('close', resolve))
  open.push({ close: () => gone }, { close: async () => buyer.stdin.end() })
  const asked = () =>
    total(receiver, 'traces_service_graph_request_total', ({ client }) => client === 'graph-buyer')
  await isTold('requests', () => [asked()], [25])
})
