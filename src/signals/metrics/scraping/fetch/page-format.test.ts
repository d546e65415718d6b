import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatOf } from './page-format.ts'

function check(contentType: string, want: string, fallback: 'text' | 'openmetrics' | '' = ''): void {
  const verdict = formatOf(contentType, fallback)
  const got =
    'fault' in verdict ? verdict.fault : `${verdict.format}${verdict.guessed && `: ${verdict.guessed}`}`
  assert.equal(got, want)
}

test('the media type tells the format, whatever its version', () => {
  check('text/plain', 'text')
  check('text/plain; version=0.0.4', 'text')
  check('text/plain; version=1.0.0; escaping=allow-utf-8', 'text')
  check('Text/Plain;charset="utf-8"', 'text')
  check(' text/plain ; ', 'text')
  check('application/openmetrics-text', 'openmetrics')
  check('application/openmetrics-text; version=1.0.0; charset=utf-8', 'openmetrics')
  check('application/openmetrics-text; version=0.0.1', 'openmetrics')
  check('text/plain; charset=utf-8; charset=utf-8', 'text')
})

test('what tells no format is a fault, unless there is something to fall back to', () => {
  const hint = '; set fallback_scrape_protocol, or fix the target'
  check('', `the target sends no Content-Type${hint}`)
  check('', 'text: the target sends no Content-Type; parsed as text format 0.0.4', 'text')
  check('text/html', `Content-Type "text/html" is not a metrics format${hint}`)
  check(
    'text/html',
    'openmetrics: Content-Type "text/html" is not a metrics format; parsed as OpenMetrics',
    'openmetrics',
  )
  check('text', `Content-Type "text" is not a metrics format${hint}`)
  for (const text of [
    'invalid/',
    '/',
    'invalid/invalid/invalid',
    'application/openmetrics-text; charset=UTF-8; charset=utf-8',
    'text/plain; version',
    'text/plain; version=',
    'text/plain version=0.0.4',
    'text/plain; a="b',
    ';',
    `text/plain;${' '.repeat(100_000)}x`,
  ]) {
    const verdict = formatOf(text, '')
    assert.ok('fault' in verdict && verdict.fault.includes('invalid Content-Type'), text)
    const fallen = formatOf(text, 'text')
    assert.ok('format' in fallen && fallen.format === 'text' && fallen.guessed !== '')
  }
})

test('protobuf is not read as text, whatever is fallen back to', () => {
  const verdict = formatOf('application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily', 'text')
  assert.ok('fault' in verdict && verdict.fault.includes('protobuf'))
})
