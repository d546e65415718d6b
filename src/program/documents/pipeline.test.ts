import assert from 'node:assert/strict'
import { get } from 'node:http'
import { afterEach, test } from 'node:test'
import { startInnerAgent } from '../../../test/helpers/inner-agent.ts'
import { startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { freePort, until } from '../../../test/helpers/program.ts'
import { defaults } from '../../config/index.ts'
import type { PipelineLine } from '../../view/api/ui/documents.ts'
import type { Live, UiSource } from '../../view/api/ui/source.ts'

const open: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end()
})

/** The documents of an agent that makes spans of its own work, and nothing else, and what gives it some. */
async function sourceOf(
  env: Record<string, string>,
): Promise<{ source: UiSource; work: () => Promise<void> }> {
  const { agent } = await startInnerAgent({
    SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:0',
    SVC_SELF_TELEMETRY_ADMIN_SOCKET: '',
    SVC_SELF_TELEMETRY_TRACING_ENABLED: 'true',
    SVC_SELF_TELEMETRY_TRACING_SAMPLE_RATE: '1',
    SVC_AGENT_EBPF_ENABLED: 'false',
    SVC_AGENT_NODEEXPORTER_ENABLED: 'false',
    SVC_AGENT_DISCOVERY_ENABLED: 'false',
    SVC_AGENT_GPU_ENABLED: 'false',
    SVC_PIPELINE_EXPORT_BATCH_TIMEOUT: '100ms',
    SVC_OTLP_INSECURE: 'true',
    SVC_BACKOFF_INITIAL: '100ms',
    SVC_PIPELINE_OPERATIONS_SHUTDOWN_DRAIN_TIMEOUT: '100ms',
    ...env,
  })
  open.push(() => agent.stop())
  const { url } = agent.links().find(({ what }) => what === 'status')!
  const work = () =>
    new Promise<void>((resolve, reject) => {
      get(url, { agent: false }, response => response.resume().on('end', resolve)).on('error', reject)
    })
  return { source: agent.view.ui!, work }
}

async function lineOf(live: Live<PipelineLine>): Promise<PipelineLine> {
  const lines = await live.next()
  assert.equal(lines.length, 1)
  return lines[0]!
}

const nodeOf = ({ nodes }: PipelineLine, id: string) => {
  const node = nodes.find(each => each.id === id)
  assert.ok(node, `${id} among ${nodes.map(each => each.id).join(' ')}`)
  return node
}

/** Every edge leads from one node to another, and each signal from its sources to its exporter. */
function checkGraph(line: PipelineLine): void {
  const ids = new Set(line.nodes.map(({ id }) => id))
  assert.equal(ids.size, line.nodes.length)
  for (const { from, to, per_s } of line.edges) {
    assert.ok(ids.has(from) && ids.has(to), `${from} → ${to}`)
    assert.ok(per_s >= 0 && Number.isFinite(per_s))
  }
  for (const { signal, collected, recovered, exported, rejected, dropped, queued } of line.signals) {
    const lost = dropped.reduce((sum, { items }) => sum + items, 0)
    assert.equal(collected + recovered, exported + rejected + lost + queued)
    let at = 'processor:limit_attributes'
    for (let steps = 0; !at.startsWith('exporter:'); steps++) {
      assert.ok(steps < 10, `${signal} does not lead from ${at} to an exporter`)
      const next = line.edges.filter(edge => edge.signal === signal && edge.from === at)
      assert.equal(next.length, 1, `${signal} from ${at}`)
      at = next[0]!.to
    }
  }
}

test('the graph is that of the real parts, with what is off and why', async () => {
  const { source } = await sourceOf({})
  const live = source.pipeline()
  const line = await lineOf(live)
  checkGraph(line)
  assert.deepEqual(
    line.signals.map(({ signal }) => signal),
    ['traces', 'metrics', 'logs', 'profiles'],
  )
  const check = (id: string, state: string, reason: RegExp) => {
    const node = nodeOf(line, id)
    assert.equal(node.state, state, id)
    assert.match(node.reason, reason)
  }
  check('source:requests', 'off', /set agent\.ebpf\.enabled: true/)
  check('source:host-metrics', 'off', /set agent\.nodeexporter\.enabled: true/)
  check('source:profiles', 'off', /set agent\.ebpf\.enabled: true/)
  check('source:gpus', 'off', /set agent\.gpu\.enabled: true/)
  check('source:self', 'ok', /^$/)
  check('queue:traces', 'off', /set otlp\.endpoint/)
  check('exporter:', 'off', /set otlp\.endpoint/)
  live.close?.()
})

test('rates are those of the items that pass', async () => {
  const receiver = await startReceiver()
  open.push(() => receiver.close())
  const { source, work } = await sourceOf({ SVC_OTLP_ENDPOINT: receiver.endpoint })
  const live = source.pipeline()
  const exporter = `exporter:${receiver.endpoint}`
  let line = await lineOf(live)
  checkGraph(line)
  assert.deepEqual(
    line.edges.filter(({ per_s }) => per_s > 0),
    [],
  )
  const rate = (from: string) =>
    line.edges.find(edge => edge.from === from && edge.signal === 'traces')?.per_s ?? 0
  await until(
    () => `spans pass: ${JSON.stringify(line)}`,
    30_000,
    async () => {
      await work()
      line = await lineOf(live)
      checkGraph(line)
      return rate('source:self') > 0 && rate('queue:traces') > 0
    },
  )
  assert.equal(nodeOf(line, exporter).state, 'ok')
  assert.deepEqual(nodeOf(line, exporter).signals, ['traces', 'metrics', 'logs', 'profiles'])
  assert.equal(nodeOf(line, 'queue:traces').state, 'ok')
  live.close?.()
})

test('an exporter that fails says why, and a queue that grows when it is full', async () => {
  const { source, work } = await sourceOf({ SVC_OTLP_ENDPOINT: `127.0.0.1:${await freePort()}` })
  const live = source.pipeline()
  let line = await lineOf(live)
  await until(
    () => `the exporter has failed, and the queue grows: ${JSON.stringify(line)}`,
    30_000,
    async () => {
      await work()
      line = await lineOf(live)
      const [traces] = line.signals
      const state = line.nodes.find(({ id }) => id.startsWith('exporter:'))!.state
      return state === 'failed' && traces!.queued > 0 && traces!.queued_bytes > 0
    },
  )
  const failed = line.nodes.find(({ id }) => id.startsWith('exporter:'))!
  assert.match(failed.reason, /^traces: .*127\.0\.0\.1.*: run svc doctor export/)
  const [traces] = line.signals
  assert.equal(traces!.capacity_bytes, defaults().queues.traces.mem_limit)
  assert.equal(traces!.durable, false)
  live.close?.()
})
