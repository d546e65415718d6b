import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SeriesLine } from '../../../src/view/api/ui/documents.ts'
import { FamilyFilter, firstOf, type Section } from './families.ts'
import {
  added,
  canBeSummed,
  combined,
  drawnUnit,
  labelsOf,
  linesOf,
  type OverTime,
  type Start,
} from './over-time.ts'
import { promql } from './promql.ts'

const family = (name: string, more: Partial<Section['families'][number]> = {}) => ({
  name,
  otel_name: '',
  help: '',
  type: 'gauge',
  unit: '',
  series: 1,
  value: 1,
  ...more,
})
const sections: Section[] = [
  {
    name: 'disk',
    source: '/proc/diskstats',
    fault: '',
    families: [family('node_disk_read', { help: 'Bytes READ.' }), family('node_disk_written')],
  },
  { name: 'zfs', source: '', fault: 'none here', families: [] },
  { name: 'svc', source: '', fault: '', families: [family('svc_items', { otel_name: 'svc.items' })] },
]

test('metrics are found by words in whatever is told of them', () => {
  const filter = new FamilyFilter(sections)
  const check = (text: string, want: string[]) =>
    assert.deepEqual(
      filter.find(text).flatMap(({ families }) => families.map(({ name }) => name)),
      want,
    )
  check('', ['node_disk_read', 'node_disk_written', 'svc_items'])
  check(' bytes  Disk ', ['node_disk_read'])
  check('diskstats', ['node_disk_read', 'node_disk_written'])
  check('svc.items', ['svc_items'])
  check('nothing such', [])
  assert.deepEqual(
    firstOf(filter.find(''), 2).map(({ families }) => families.length),
    [2, 0, 0],
  )
})

test('a metric is asked for as it is drawn', () => {
  const asked = { name: 'm', type: 'gauge', only: undefined, split: '', sums: false }
  const only = { label: 'device', value: 'a"b\\c\n' }
  const check = (more: object, want: string) => assert.equal(promql({ ...asked, ...more }), want)
  check({}, 'm')
  check({ only }, 'm{device="a\\"b\\\\c\\n"}')
  check({ type: 'counter' }, 'rate(m[5m])')
  check({ type: 'counter', split: 'mode', sums: true }, 'sum by (mode) (rate(m[5m]))')
  check({ split: 'mode' }, 'avg by (mode) (m)')
  check({ type: 'histogram' }, 'histogram_quantile(0.95, sum by (le) (rate(m_bucket[5m])))')
  check(
    { type: 'histogram', split: 'route', only: { label: 'method', value: 'GET' } },
    'histogram_quantile(0.95, sum by (le, route) (rate(m_bucket{method="GET"}[5m])))',
  )
})

function start(more: Partial<Start> = {}): Start {
  const one = (device: string, mode: string, values: (number | null)[]) => ({
    labels: { device, mode, job: 'x' },
    line: '',
    values,
  })
  return {
    kind: 'start',
    family: family('m'),
    from_ms: 1_000_000,
    step_ms: 10_000,
    rate: false,
    series: [one('a', 'r', [1, 2]), one('a', 'w', [null, 20]), one('b', 'r', [5, null])],
    omitted: 0,
    ...more,
  }
}

function followed(lines: readonly SeriesLine[], seconds = 900): OverTime {
  let known: OverTime | undefined
  for (const line of lines) known = added(known, line, seconds)
  return known!
}

test('readings are put behind the past, what is older than the window goes, and none comes twice', () => {
  const tick = (at_ms: number, ...values: (number | null)[]): SeriesLine => ({ kind: 'tick', at_ms, values })
  const known = followed([start(), tick(1_012_000, 3, 30, 7), tick(1_012_000, 9, 9, 9)])
  assert.deepEqual(known.times, [1000, 1010, 1012])
  assert.deepEqual(known.values[1], [null, 20, 30])
  const later = added(known, tick(1_021_000, 4, 40), 10)!
  assert.deepEqual(later.times, [1012, 1021])
  assert.deepEqual(later.values, [
    [3, 4],
    [30, 40],
    [7, null],
  ])
  assert.equal(added(undefined, tick(1, 2), 10), undefined)
})

test('labels to choose from are those in which series differ', () => {
  assert.deepEqual(labelsOf(start()), [
    { name: 'device', values: ['a', 'b'] },
    { name: 'mode', values: ['r', 'w'] },
  ])
})

test('lines are series, or what series with one label have together, the largest first', () => {
  const known = followed([start()])
  const check = (split: string, only: string, want: unknown[]) => {
    const [label = '', value = ''] = only.split('=')
    const lines = linesOf(known, { split, only: label === '' ? undefined : { label, value } }, true)
    assert.deepEqual(
      lines.map(line => [line.label, combined(known, line, true).at(-1)]),
      want,
    )
  }
  check('', '', [
    ['device=a, mode=w', 20],
    ['device=b, mode=r', null],
    ['device=a, mode=r', 2],
  ])
  check('device', '', [
    ['a', 22],
    ['b', null],
  ])
  check('mode', 'device=a', [
    ['w', 20],
    ['r', 2],
  ])
  check('', 'device=c', [])
  const [line] = linesOf(known, { split: 'device', only: undefined }, false)
  assert.deepEqual(combined(known, line!, false), [1, 11])
})

test('series that look alike without what may not be seen stay apart', () => {
  const masked = start()
  const alike = { ...masked, series: masked.series.map(each => ({ ...each, labels: { device: '***' } })) }
  const lines = linesOf(followed([alike]), { split: '', only: undefined }, true)
  assert.equal(new Set(lines.map(({ label }) => label)).size, 3)
})

test('rates and amounts of memory are added up, and have the unit of what is drawn', () => {
  const check = (rate: boolean, type: string, unit: string, want: [boolean, string]) => {
    const given = start({ rate, family: family('m', { type, unit }) })
    assert.deepEqual([canBeSummed(given), drawnUnit(given)], want)
  }
  check(false, 'gauge', 'Cel', [false, 'Cel'])
  check(false, 'gauge', 'By', [true, 'By'])
  check(true, 'counter', 'By', [true, 'By/s'])
  check(true, 'counter', 's', [true, ''])
  check(true, 'counter', '{packet}', [true, '1/s'])
  check(true, 'histogram', 's', [true, '1/s'])
})
