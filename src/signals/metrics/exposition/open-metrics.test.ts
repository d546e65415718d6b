import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseExposition } from '../../../../test/helpers/exposition.ts'
import { counter, family, gauge, untyped } from '../../../foundation/model/collector.ts'
import { boundsOf } from './bounds.ts'
import { openMetrics } from './open-metrics.ts'
import { Page, type Source } from './page.ts'

const bounds = boundsOf({
  enabled: false,
  max_metrics: 0,
  include_metrics: [],
  exclude_metrics: [],
  drop_labels: [],
})

test('a page is OpenMetrics: names of counters, unknown types, canonical bounds, escapes', () => {
  const page = new Page({ namespace: 'node', bounds })
  const source: Source = { name: 'a', round: 0, duplicates: 0 }
  const readings = page.begin(source)
  readings.set(counter('calls_total', 'Calls of "all".', { labels: ['device'] }), 3e6, 'a"b\\c\nd')
  readings.set(counter('forks', 'Forks.'), 2)
  readings.set(gauge('x', 'A gauge.'), 1)
  readings.set(counter('x_total', 'Its sum.'), 5)
  readings.set(untyped('some', 'Some \\ thing.'), -1.5)
  const spans = { parts: [[0.5, 1] as const, [10, 2] as const], sum: 7, count: 4 }
  readings.setDistribution(family('histogram', 'wait', 'Waits.', { labels: ['cpu'] }), spans, ['0'])
  readings.setDistribution(
    family('summary', 'z', 'Quantiles.'),
    { parts: [[0.5, 1] as const, [1, 2] as const], sum: 7, count: 4 },
    [],
  )
  const text = openMetrics(page, new Set([source]), 0)
  assert.equal(
    text,
    [
      '# TYPE node_calls counter',
      '# HELP node_calls Calls of \\"all\\".',
      'node_calls_total{device="a\\"b\\\\c\\nd"} 3e+06',
      '# TYPE node_forks unknown',
      '# HELP node_forks Forks.',
      'node_forks 2',
      '# TYPE node_some unknown',
      '# HELP node_some Some \\\\ thing.',
      'node_some -1.5',
      '# TYPE node_wait histogram',
      '# HELP node_wait Waits.',
      'node_wait_bucket{cpu="0",le="0.5"} 1',
      'node_wait_bucket{cpu="0",le="10.0"} 2',
      'node_wait_bucket{cpu="0",le="+Inf"} 4',
      'node_wait_count{cpu="0"} 4',
      'node_wait_sum{cpu="0"} 7',
      '# TYPE node_x gauge',
      '# HELP node_x A gauge.',
      'node_x 1',
      '# TYPE node_x_total unknown',
      '# HELP node_x_total Its sum.',
      'node_x_total 5',
      '# TYPE node_z summary',
      '# HELP node_z Quantiles.',
      'node_z{quantile="0.5"} 1',
      'node_z{quantile="1.0"} 2',
      'node_z_count 4',
      'node_z_sum 7',
      '# EOF',
      '',
    ].join('\n'),
  )
  // The strict reader knows no summaries.
  parseExposition(text.replace(/^.*node_z.*\n/gm, ''), 'openmetrics')
  assert.match(openMetrics(page, new Set([source]), 1), /^# TYPE node_calls counter\n.*\n.*\n# EOF\n$/)
  assert.equal(openMetrics(page, new Set(), 0), '# EOF\n')
})
