// Pages that are read, mapped to OTLP and printed back are what they were: the families in the order of the page, their
// series in that of their family.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { printedMetric } from '../../../../../test/helpers/mapping-text.ts'
import { readPage } from '../page-reader.ts'
import { sampleKey } from '../sample-key.ts'
import { mapFamily } from './map-family.ts'

function printedBack(page: string): string {
  const body = Buffer.from(page)
  const read = readPage(body, 'text', { lenient: false, maxSamples: 0, maxLineBytes: 2 ** 20 })
  if ('reason' in read) throw new Error(`line ${read.line}: ${read.reason}: ${read.excerpt}`)
  let text = ''
  for (const family of read.families) {
    const series = Array.from({ length: family.to - family.from }, (_, i) => {
      const at = family.from + i
      return { ...sampleKey(body, read.keyFrom[at]!, read.keyTo[at]!)!, value: read.values[at]!, timeUs: 1 }
    })
    const { metrics, dropped } = mapFamily({ family, series, numbers: 'values' })
    assert.deepEqual([...dropped], [])
    for (const [i, { metric }] of metrics.entries()) text += printedMetric(metric, i > 0)
  }
  return text
}

test('the page of the system metrics endpoint is itself', () => {
  const golden = readFileSync(
    join(import.meta.dirname, '../../../../../test/golden/system-metrics.txt'),
    'utf8',
  )
  // It leaves out values that differ each time.
  const page = golden.replace(/^[^#].*[{}]$/gm, line =>
    line.endsWith('}') ? `${line} 1` : `${line}a="b"} 1`,
  )
  const back = printedBack(page).split('\n')
  // A label without a value is one that is not there.
  const want = page.replace(/^[^#].*=""[,}].*/gm, withoutEmpty).split('\n')
  for (const [i, line] of want.entries()) assert.equal(back[i], line)
  assert.equal(back.length, want.length)
  assert.ok(want.length > 3000)
})

function withoutEmpty(line: string): string {
  return line
    .replace(/(?<=[{,])\w+="",?/g, '')
    .replace(/,(?=\} )/, '')
    .replace('{} ', ' ')
}

test('a page of histograms and summaries is itself', () => {
  const page = String.raw`# HELP http_seconds Times.\nWith \\ and "quotes".
# TYPE http_seconds histogram
http_seconds_bucket{code="200",path="C:\\a\n\"b\"",le="2.5e-05"} 0
http_seconds_bucket{code="200",path="C:\\a\n\"b\"",le="1"} 3
http_seconds_bucket{code="200",path="C:\\a\n\"b\"",le="+Inf"} 4
http_seconds_sum{code="200",path="C:\\a\n\"b\""} 2.25
http_seconds_count{code="200",path="C:\\a\n\"b\""} 4
http_seconds_bucket{code="500",le="10"} 1
http_seconds_bucket{code="500",le="+Inf"} 1
http_seconds_sum{code="500"} NaN
http_seconds_count{code="500"} 1
# TYPE gc summary
gc{quantile="0"} 1e-05
gc{quantile="0.5"} NaN
gc{quantile="1"} +Inf
gc_sum 0.25
gc_count 1.2345678e+07
# HELP up Whether.
# TYPE up untyped
up{city="Zürich 🙂"} 1
# TYPE ends_total counter
ends_total -Inf
`
  assert.equal(printedBack(page), page)
})
