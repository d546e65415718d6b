import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bannerText } from './run-agent.ts'

test('the banner shows each subsystem with its mend, then where to look', () => {
  const text = bannerText(
    'svc 0.1.0, linux 6.18',
    [
      { state: 'ok', name: 'traces', detail: 'HTTP' },
      { state: 'none', name: 'export', detail: 'data stays here', mend: 'set otlp.endpoint' },
    ],
    [{ what: 'status', url: 'http://127.0.0.1:19090/status' }],
    false,
  )
  assert.deepEqual(text.split('\n'), [
    'svc 0.1.0, linux 6.18',
    '  ok      traces  HTTP',
    '  none    export  data stays here',
    '                  mend: set otlp.endpoint',
    '  status  http://127.0.0.1:19090/status',
    '',
  ])
})
