import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { svc } from '../../../test/helpers/svc.ts'
import { liveOf, startUiAgent, type UiAgent } from '../../../test/helpers/ui-agent.ts'
import type { TapLine } from '../../view/api/ui/documents.ts'
import type { TapQuery } from '../../view/api/ui/source.ts'

const at = new Date(2026, 0, 31, 12, 0, 1, 234).getTime()
const span: TapLine = {
  kind: 'item',
  signal: 'traces',
  time_ms: at,
  service: 'cart',
  title: 'GET /cart/*',
  error: false,
  duration_ms: 8.2,
  detail: '200',
}
const otlp = { resourceSpans: [{ scopeSpans: [] }] }
const queries: TapQuery[] = []
let lines: readonly TapLine[] = []
let agent: UiAgent

before(async () => {
  agent = await startUiAgent({
    tap: query => {
      queries.push(query)
      return liveOf(() => (query.otlp ? lines.map(line => ({ ...line, otlp })) : lines))
    },
  })
})
after(() => agent?.close())

const tap = (...args: string[]) => svc(['tap', ...args, '--config', agent.config])

test('items are lines of text, what failed is marked, and it ends after as many as were asked for', async () => {
  lines = [
    span,
    { ...span, title: 'SELECT\x1b[31m\norders', service: '', error: true, duration_ms: null, detail: '' },
    { kind: 'skipped', items: 7 },
    span,
  ]
  const { code, out, talk } = await tap('traces', '-n', '3')
  assert.deepEqual(out.split('\n'), [
    '12:00:01.234 cart                8.2ms   GET /cart/* 200',
    '12:00:01.234 -                  ! SELECT?[31m orders',
    '12:00:01.234 cart                8.2ms   GET /cart/* 200',
    '',
  ])
  assert.deepEqual([code, talk], [0, '7 items more were too fast to show\n'])
})

test('conditions reach the agent, and --json prints what it sends as OTLP', async () => {
  lines = [span]
  const { code, out, talk } = await tap(
    ...['traces', '--service', 'cart & co', '--errors', '--min', '1.5s', '-n', '2', '--json'],
  )
  assert.deepEqual([code, talk, out], [0, '', `${JSON.stringify(otlp)}\n`.repeat(2)])
  const { signal, service, errors, min_ms } = queries.at(-1)!
  assert.deepEqual([signal, service, errors, min_ms], ['traces', 'cart & co', true, 1500])
})

test('what waits says so, and an agent that goes is a failure in words', async t => {
  lines = []
  const own = await startUiAgent({ tap: () => liveOf<TapLine>(() => []) })
  t.after(() => own.close())
  const { code, out, talk } = await svc(['tap', 'logs', '--errors', '--config', own.config], {
    onTalk: said => said.includes('waiting') && void own.close(),
  })
  assert.deepEqual([code, out], [1, ''])
  assert.match(
    talk,
    /^waiting for logs with errors \(ctrl-c to stop; if nothing appears: svc doctor logs\)\n/,
  )
  assert.match(talk, /svc: cannot tap logs any longer: the agent at unix:\S+ has stopped\n$/)
})

test('a command line that makes no sense is refused with what does', async () => {
  const check = async (args: string[], want: RegExp) => {
    const { code, out, talk } = await svc(['tap', ...args])
    assert.deepEqual([code, out], [2, ''])
    assert.match(talk, want)
  }
  await check([], /no signal given; the signals are traces, logs, metrics, profiles/)
  await check(['trace'], /unknown signal "trace"; did you mean traces\? The signals are/)
  await check(['logs', '--min', '1s'], /--min is for traces/)
  await check(['metrics', '--errors'], /--errors is for traces and logs/)
  await check(['traces', '--min', 'long'], /--min must be a duration such as 200ms/)
  await check(['traces', '-n', '0'], /--count must be a whole number of at least 1/)
})

test('an agent that does not serve it is told with the key', async t => {
  const own = await startUiAgent({}, { ui: undefined } as never)
  t.after(() => own.close())
  const { code, talk } = await svc(['tap', 'traces', '--config', own.config])
  assert.equal(code, 1)
  assert.match(talk, /it is older than this command, or was started with self_telemetry\.ui\.enabled: false/)
})
