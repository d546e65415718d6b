// owns: ports
import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { Buyer, checkCounts, checkSpans, output, plan, requests } from '../helpers/load.ts'
import { freePort, pause, until } from '../helpers/program.ts'
import { Telemetry } from '../helpers/telemetry.ts'
import { startNodeShop } from '../helpers/web-servers.ts'

const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

function closing<T extends { close(): Promise<unknown> }>(one: T): T {
  open.push(one)
  return one
}

/** An agent that is killed at the end, if it still runs. */
function killing(agent: AgentProcess): AgentProcess {
  open.push({ close: () => agent.kill() })
  return agent
}

interface Readiness {
  readonly status: string
  readonly checks: Readonly<Record<string, string>>
}

const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] as const
/** Its own view of the files of the host, in which the kernel's types are hidden. */
const withoutBtf = [
  'unshare',
  '-m',
  'sh',
  '-c',
  'mount -t tmpfs none /sys/kernel/btf && exec "$@"',
  'sh',
] as const

/** Programs in the kernel, by whomever. */
async function programs(): Promise<number[]> {
  const listed = JSON.parse(await output('bpftool', '-j', 'prog', 'show')) as { id: number }[]
  return listed.map(({ id }) => id)
}

test('an agent that is killed leaves no program behind, and the next one starts and sees at once', async () => {
  const telemetry = closing(await Telemetry.start())
  const port = await freePort()
  const shop = closing(await startNodeShop(port))
  const buyer = closing(await Buyer.start('node', shop, plan(requests, shop), true))
  await buyer.open()
  const first = killing(await AgentProcess.start({ endpoint: telemetry.endpoint, ports: [port] }))
  const status = await first.document<{ programs: { id: number }[] }>('/status/ebpf')
  const ids = status.programs.map(({ id }) => id)
  const loaded = await programs()
  assert.ok(ids.length >= 4)
  for (const id of ids) assert.ok(loaded.includes(id), `program ${id} is loaded`)
  await first.kill()
  const second = killing(await AgentProcess.start({ endpoint: telemetry.endpoint, ports: [port] }))
  let left: number[] = []
  await until(
    () => `the programs ${left} are gone`,
    30_000,
    async () => {
      const now = await programs()
      left = ids.filter(id => now.includes(id))
      return left.length === 0
    },
  )
  await buyer.go()
  await telemetry.arrived(2 * requests, port)
  await telemetry.settle(second)
  checkSpans(telemetry, shop, buyer)
  checkCounts(telemetry, shop, buyer)
})

/** All of eBPF that does not look at the whole host. */
const others = {
  agent: {
    profiling: { enabled: true },
    nodeexporter: { enabled: true, listen_address: '127.0.0.1:0' },
  },
}

async function checkDegraded(wrapper: readonly string[], reason: RegExp, hint: RegExp): Promise<void> {
  const agent = killing(await AgentProcess.start({ wrapper, ports: [], readyStatus: 503, config: others }))
  const ready = await agent.document<Readiness>('/ready')
  assert.equal(ready.status, 'not_ready')
  assert.match(ready.checks.ebpf!, /^failed: /)
  assert.match(ready.checks.ebpf!, reason)
  for (const part of ['traces', 'profiles', 'host metrics by eBPF'])
    assert.ok(ready.checks.ebpf!.includes(part), `${part}: ${ready.checks.ebpf}`)
  assert.equal((await agent.get('/healthz')).status, 200)
  const told = agent.log.filter(line => line.subsystem === 'traces')
  assert.equal(told.length, 1, agent.logText())
  assert.equal(told[0]!.level, 'warn')
  assert.match(told[0]!.msg, reason)
  assert.match(String(told[0]!.hint), hint)
  assert.deepEqual(await agent.stop(), { code: 0, signal: null })
}

test('without rights the agent runs, and says what is missing and how to fix it', () =>
  checkDegraded(asNobody, /CAP_BPF and CAP_PERFMON missing/, /root/))

test('without BTF the agent runs, and says what is missing and how to fix it', () =>
  checkDegraded(withoutBtf, /\/sys\/kernel\/btf\/vmlinux does not exist/, /CONFIG_DEBUG_INFO_BTF/))

test('where eBPF is required and missing the agent refuses to start with exit code 3, whatever it is for', async () => {
  const check = async (config: Tree, parts: readonly string[]) => {
    const agent = killing(await AgentProcess.spawn({ wrapper: asNobody, ports: [], config }))
    assert.deepEqual(await agent.exited, { code: 3, signal: null }, agent.logText())
    const { level, msg } = agent.log.at(-1)!
    assert.equal(level, 'error')
    assert.match(
      msg,
      /^cannot start: agent\.ebpf\.required is true and eBPF is not available: .*CAP_BPF.*root/,
    )
    for (const part of parts) assert.ok(msg.includes(part), `${part}: ${msg}`)
  }
  const required = { required: true }
  await check({ agent: { ebpf: required } }, ['traces'])
  const without = { ...required, network: { enabled: false } }
  const { profiling, nodeexporter } = others.agent
  await check({ agent: { ebpf: without, profiling } }, ['profiles'])
  await check({ agent: { ebpf: without, nodeexporter } }, ['host metrics by eBPF'])
})

/** Checks that each span is in exactly one place of the books. */
async function checkBooks(agent: AgentProcess): Promise<void> {
  const metrics = await agent.metrics()
  const collected = metrics.sum('svc_spans_collected_total')
  const exported = metrics.sum('svc_spans_exported_total')
  const dropped = metrics.sum('svc_spans_dropped_total')
  const queued = metrics.sum('svc_export_queue_size', 'signal_type="traces"')
  assert.equal(collected, exported + dropped + queued, `${exported} + ${dropped} + ${queued}`)
}

test('while the receiver is away nothing is lost and the books are right, and it gets everything later', async () => {
  const away = await Telemetry.start(await freePort())
  const port = await freePort()
  const agent = killing(await AgentProcess.start({ endpoint: away.endpoint, ports: [port] }))
  const shop = closing(await startNodeShop(port))
  const buyer = closing(await Buyer.start('python', shop, plan(requests, shop), true))
  const receiverPort = away.receiver.port
  await away.close()
  const sending = buyer.go()
  let sent = false
  void sending.then(() => {
    sent = true
  })
  while (!sent) {
    await checkBooks(agent)
    await pause(20)
  }
  await sending
  await until('all spans wait', 60_000, async () => {
    await checkBooks(agent)
    return (await agent.metrics()).sum('svc_export_queue_size', 'signal_type="traces"') >= 2 * requests
  })
  // Spans wait for their batch before the first of them is tried.
  await until('the check fails', 60_000, async () => {
    const { checks } = await agent.document<Readiness>('/ready')
    assert.equal(checks.ebpf, 'ok')
    return checks.otlp!.startsWith('failed: ')
  })
  const telemetry = closing(await Telemetry.start(receiverPort))
  await telemetry.arrived(2 * requests, port)
  await checkBooks(agent)
  await telemetry.settle(agent)
  await checkBooks(agent)
  checkSpans(telemetry, shop, buyer)
  checkCounts(telemetry, shop, buyer)
  const metrics = await agent.metrics()
  assert.equal(metrics.sum('svc_spans_dropped_total', 'reason="queue_full"'), 0)
  assert.equal((await agent.document<Readiness>('/ready')).checks.otlp, 'ok')
})

test('SIGTERM delivers all that was seen and ends with exit code 0', async () => {
  const telemetry = closing(await Telemetry.start())
  const port = await freePort()
  // Nothing would leave by itself in the time that the test takes.
  const config = {
    // Its own port is left out, so that nothing but the shop's exchanges is counted as finished.
    agent: { ebpf: { network: { metrics_interval: '1h', include_ports: [port] } } },
    pipeline: { export: { batch: { timeout: '1m' } } },
  }
  const agent = killing(await AgentProcess.start({ endpoint: telemetry.endpoint, config }))
  const shop = closing(await startNodeShop(port))
  const buyer = closing(await Buyer.start('python', shop, plan(requests, shop), true))
  await buyer.go()
  const finished = async () => (await agent.counters()).finished!
  await until('both sides of all are over', 60_000, async () => (await finished()) >= 2 * requests)
  assert.deepEqual(await agent.stop(), { code: 0, signal: null }, agent.logText())
  checkSpans(telemetry, shop, buyer)
  checkCounts(telemetry, shop, buyer)
})
