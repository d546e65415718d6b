import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { loadConfig } from '../../config/index.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import { ProcessTable } from '../../identity/entities/process-table.ts'
import type { OverviewLine } from '../../view/api/ui/documents.ts'
import { overviewLine } from '../../view/api/ui/host-documents.ts'
import type { Live } from '../../view/api/ui/source.ts'
import { EdgeWindow } from '../../view/window/edge-window.ts'
import { Vitals } from '../../view/window/vitals.ts'
import type { DocumentContext } from './document-context.ts'
import { overview } from './overview.ts'

const ajv = new Ajv2020({ strict: false, allErrors: true })
const dropped = new Map([
  ['no_endpoint', 1000],
  ['queue_full', 3],
])

/** An agent on which nothing happens, with vitals by a clock of the test. */
function start(t: TestContext, seconds: number) {
  const loaded = loadConfig({ explicit: false, cwd: '/nonexistent', systemFile: '/nonexistent', env: {} })
  const clock = { ms: 1_000_000 }
  const vitals = new Vitals({ windowMs: 900_000, maxBytes: 1 << 20, now: () => clock.ms })
  const pass = () => {
    clock.ms += 1000
    vitals.begin()
    vitals.set('cpuUser', vitals.newest)
  }
  for (let i = 0; i < seconds; i++) pass()
  const edges = new EdgeWindow({ maxBytes: 1 << 20, windowMs: 900_000, now: Date.now })
  const pipeline = {
    state: () => ({ dropped, rejected: 0, oldestMs: 0, destination: undefined }),
    fill: () => 0,
  }
  const parts = {
    loaded: () => loaded,
    pipelines: { pipeline, faults: [], store: undefined, stages: () => [] },
    processes: new ProcessTable({ hostName: 'h', hostId: '', bootId: '', version: '1' } as never),
    discovery: {
      host: {
        resource: { attributes: Attributes.of({ 'host.name': 'shop-3', 'os.description': 'Debian 12' }) },
      },
    },
    tracing: undefined,
    faults: () => [],
    memory: { shortage: undefined },
    cpu: { shortage: undefined },
    stuck: () => undefined,
    reloads: () => ({ lastSuccessful: true }),
    hostMetrics: () => undefined,
    shown: (text: string) => text,
    window: { vitals, edges, bytes: 5, maxBytes: 10, windowMs: 900_000 },
  } as unknown as DocumentContext
  const open: Live<OverviewLine>[] = []
  t.after(() => {
    for (const live of open) live.close?.()
  })
  const look = (of: number) => {
    const live = overview(parts, of)
    open.push(live)
    return live
  }
  return { look, pass, vitals }
}

/** The lines, which are as they are described. */
async function next(live: Live<OverviewLine>): Promise<readonly OverviewLine[]> {
  const lines = await live.next()
  for (const line of lines)
    assert.ok(ajv.validate(overviewLine.json, JSON.parse(JSON.stringify(line))), ajv.errorsText())
  return lines
}

const user = (line: OverviewLine | undefined) => (line?.kind === 'tick' ? line.values[0] : undefined)

test('the overview begins with the past, and goes on where that ends', async t => {
  const { look, pass, vitals } = start(t, 5)
  const live = look(900)
  const [first, tick, ...others] = await next(live)
  assert.deepEqual(others, [])
  assert.ok(first?.kind === 'start' && tick?.kind === 'tick')
  const { newest } = vitals
  assert.deepEqual(first.series[0], {
    chart: 'cpu',
    label: 'user',
    unit: '%',
    values: [newest - 4, newest - 3, newest - 2, newest - 1],
  })
  assert.equal(user(tick), newest)
  assert.ok(Math.abs(tick.at_ms - first.from_ms - 4000) < 900)
  assert.deepEqual([first.host.name, first.host.mode], ['shop-3', 'agent'])
  assert.match(first.host.system, /^Debian 12 · Linux \d/)
  assert.equal(tick.agent.dropped, 4 * 3, 'what nobody was to receive is no loss')
  assert.deepEqual([tick.agent.window_bytes, tick.agent.window_max_bytes], [5, 10])
  assert.ok(tick.agent.rss_bytes > 1e6)
  assert.ok(tick.processes.length > 0)
  assert.match(tick.findings[0]!.text, /Set otlp\.endpoint/)
  assert.deepEqual(await next(live), [], 'the second is not over')
  pass()
  assert.deepEqual((await next(live)).map(user), [newest + 1])
})

test('a reader that is late is told the last seconds, and one that is very late not all of them', async t => {
  const { look, pass, vitals } = start(t, 3)
  const live = look(900)
  await next(live)
  const { newest } = vitals
  pass()
  pass()
  assert.deepEqual((await next(live)).map(user), [newest + 1, newest + 2])
  for (let i = 0; i < 100; i++) pass()
  assert.deepEqual((await next(live)).map(user), [newest + 100, newest + 101, newest + 102])
})

test('the past is as long as was asked for, and there may be none yet', async t => {
  const { look } = start(t, 100)
  const [first] = await next(look(10))
  assert.equal(first?.kind === 'start' && first.series[0]!.values.length, 10)
  const none = start(t, 0)
  const live = none.look(900)
  const [begin, tick] = await next(live)
  assert.equal(begin?.kind === 'start' && begin.series[0]!.values.length, 0)
  assert.equal(user(tick), null)
  none.pass()
  const lines = await next(live)
  assert.deepEqual([lines.length, lines[0]?.kind], [1, 'tick'])
})

test('all who look see the same of now', async t => {
  const { look } = start(t, 3)
  // It is read anew after 0.9 s: now and then between two looks, and never between three pairs.
  const pairs = []
  for (let pair = 0; pair < 3; pair++) {
    const [, one] = await next(look(900))
    const [, other] = await next(look(900))
    assert.ok(one?.kind === 'tick' && other?.kind === 'tick')
    pairs.push(one.processes === other.processes && one.findings === other.findings)
  }
  assert.ok(pairs.includes(true))
})
