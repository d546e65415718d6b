import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BannerLine } from '../../view/api/types.ts'
import { bannerText, statusLine } from './run-agent.ts'

test('the banner shows each subsystem with its hint, then where to look', () => {
  const text = bannerText(
    'svc 0.1.0, linux 6.18',
    [
      { state: 'ok', name: 'traces', detail: 'HTTP' },
      { state: 'none', name: 'export', detail: 'data stays here', hint: 'set otlp.endpoint' },
    ],
    [{ what: 'status', url: 'http://127.0.0.1:19090/status' }],
    false,
  )
  assert.deepEqual(text.split('\n'), [
    'svc 0.1.0, linux 6.18',
    '  ok      traces  HTTP',
    '  none    export  data stays here',
    '                  Hint: set otlp.endpoint',
    '  status  http://127.0.0.1:19090/status',
    '',
  ])
})

test('the status for a service manager names what needs somebody first, each once', () => {
  const check = (lines: readonly (readonly [BannerLine['state'], string])[], want: string) =>
    assert.equal(statusLine(lines.map(([state, name]) => ({ state, name, detail: 'x' }))), want)
  check([], 'nothing is enabled')
  check([['off', 'GPUs']], 'nothing is enabled')
  check(
    [
      ['ok', 'traces'],
      ['ok', 'logs'],
      ['none', 'export'],
    ],
    'runs: traces, logs',
  )
  check(
    [
      ['ok', 'logs'],
      ['limited', 'processes'],
      ['limited', 'processes'],
      ['failed', 'traces'],
    ],
    'failed: traces; limited: processes; runs: logs (why: svc status)',
  )
})
