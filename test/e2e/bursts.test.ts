// owns: ports, load
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, test } from 'node:test'
import { promisify } from 'node:util'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { freePort, pause, until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'
import { Telemetry } from '../helpers/telemetry.ts'
import { type Nginx, startNginx } from '../helpers/web-servers.ts'

const run = promisify(execFile)
const requests = 10_000
const quietMs = soak ? 60_000 : 3_000
const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

interface Scene {
  readonly agent: AgentProcess
  readonly telemetry: Telemetry
  readonly shop: Nginx
}

async function setUp(network: Tree): Promise<Scene> {
  const telemetry = await Telemetry.start()
  open.push(telemetry)
  const port = await freePort()
  const shop = await startNginx(port)
  open.push(shop)
  const agent = await AgentProcess.start({
    endpoint: telemetry.endpoint,
    ports: [port],
    config: { agent: { ebpf: { network } } },
  })
  open.push({ close: () => agent.stop() })
  await pause(quietMs)
  return { agent, telemetry, shop }
}

/** As fast as two CPUs can. */
async function burst({ shop }: Scene, connections: number, headers: readonly string[] = []): Promise<void> {
  const counts = ['--h1', `-n${requests}`, `-c${connections}`]
  const { stdout } = await run('h2load', [
    ...counts,
    ...headers.map(header => `-H${header}`),
    `http://127.0.0.1:${shop.port}/items/1`,
  ])
  assert.match(stdout, new RegExp(`${requests} succeeded, 0 failed, 0 errored`))
}

/** Spans that were lost by reason, when all that was seen has been delivered. The metrics have every request. */
async function losses({ agent, telemetry, shop }: Scene, bursts: number): Promise<Map<string, number>> {
  await telemetry.settle(agent)
  const counted = () => [telemetry.servedBy(...shop.pids), telemetry.askedOf(shop.port)]
  // Series of one export come in more than one request.
  await until(
    () => `all requests are counted: ${counted()} are`,
    20_000,
    () => counted().every(count => count >= bursts * requests),
  )
  assert.deepEqual(counted(), [bursts * requests, bursts * requests])
  const { text } = await agent.get('/metrics')
  const lost = new Map<string, number>()
  for (const [, reason, value] of text.matchAll(/^svc_spans_dropped_total\{reason="(\w+)"\} (\d+)$/gm))
    if (reason !== 'excluded_path' && value !== '0') lost.set(reason!, Number(value))
  const total = [...lost.values()].reduce((sum, value) => sum + value, 0)
  assert.equal(telemetry.spans(shop.port).length + total, 2 * bursts * requests)
  const counters = await agent.counters()
  for (const name of ['red_full', 'desync', 'abandoned', 'segments_lost'])
    assert.equal(counters[name], 0, name)
  return lost
}

/** The event loop's thread stands still meanwhile, and no other one. */
async function whileStill(pid: number, go: () => Promise<void>): Promise<void> {
  const program = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
seize, interrupt, detach = 0x4206, 0x4207, 17
for request in (seize, interrupt):
    if libc.ptrace(request, pid, None, None): sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(pid, 0x40000000)
print('still', flush=True)
sys.stdin.read()
libc.ptrace(detach, pid, None, None)
`
  const holder = spawn('python3', ['-c', program, String(pid)], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    // In one piece or in two, as Python pleases; nothing where it could not.
    const [first] = await Promise.race([once(holder.stdout, 'data'), once(holder.stdout, 'end')])
    assert.match(String(first), /^still/)
    await go()
  } finally {
    holder.stdin.end()
    await once(holder, 'exit')
  }
}

const unbounded = { sampling: { max_spans_per_second: 1_000_000 } }

test('a burst after a quiet time costs no span that the budget allows', async () => {
  const scene = await setUp(unbounded)
  await burst(scene, 20)
  assert.deepEqual(await losses(scene, 1), new Map())
  await burst(scene, 200)
  assert.deepEqual(await losses(scene, 2), new Map())
  // Twice what the ring holds.
  await whileStill(scene.agent.pid, () => burst(scene, 20, [`x-filler: ${'x'.repeat(700)}`]))
  assert.deepEqual(await losses(scene, 3), new Map())
  const metrics = await scene.agent.metrics()
  assert.ok(metrics.sum('svc_ebpf_ringbuf_absorbed_bytes_total') > 2 ** 21)
  assert.equal(metrics.sum('svc_ebpf_ringbuf_backlog_bytes'), 0)
  assert.ok(metrics.sum('svc_ebpf_ringbuf_backlog_peak_bytes') <= 24 * 2 ** 20)
})

test('with the default budget a burst loses what is over it, and nothing else', async () => {
  const scene = await setUp({})
  await burst(scene, 20)
  await burst(scene, 20)
  const lost = await losses(scene, 2)
  lost.delete('over_budget')
  assert.deepEqual(lost, new Map())
})
