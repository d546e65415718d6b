import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scrapeJob } from '../../../../test/helpers/scrape-job.ts'
import { compileRelabel, type RelabelRule } from './relabel.ts'
import type { ScrapeJob } from './scrape-job.ts'
import { seriesLabels } from './series-labels.ts'
import type { Target } from './target.ts'

type Labels = Readonly<Record<string, string>>

function series(own: Partial<ScrapeJob>, ofTarget: Labels, told: Labels, name = 'm'): unknown {
  const job = scrapeJob(own)
  const labels = new Map(Object.entries(ofTarget))
  const target: Target = {
    job,
    id: 'x',
    url: 'http://x/metrics',
    labels,
    discovered: labels,
    intervalMs: 1000,
    timeoutMs: 1000,
  }
  const key = { name, labels: new Map(Object.entries(told)) }
  const found = seriesLabels(job, target, key)
  assert.deepEqual(
    [[...key.labels], [...labels]],
    [Object.entries(told), Object.entries(ofTarget)],
    'changed its input',
  )
  if (found === undefined) return undefined
  return 'reason' in found ? found.reason : { __name__: found.name, ...Object.fromEntries(found.labels) }
}

const rules = (...written: unknown[]) => written.map(each => compileRelabel(each) as RelabelRule)

test('labels of the target go over those of the page, which are kept under another name', () => {
  const check = (ofTarget: Labels, told: Labels, want: Labels) =>
    assert.deepEqual(series({}, ofTarget, told), { __name__: 'm', ...want })
  check({ job: 'j' }, { a: '1' }, { job: 'j', a: '1' })
  check({ job: 'j' }, { job: 'own' }, { job: 'j', exported_job: 'own' })
  check({ job: 'j' }, { job: 'j' }, { job: 'j', exported_job: 'j' })
  check({ job: 'j' }, { job: '' }, { job: 'j' })
  check({ job: 'j' }, { a: '' }, { job: 'j' })
  check(
    { foo: '1' },
    { foo: '2', exported_foo: '3' },
    { foo: '1', exported_foo: '3', exported_exported_foo: '2' },
  )
  check(
    { foo: '1', exported_foo: '2' },
    { foo: '3' },
    { foo: '1', exported_foo: '2', exported_exported_foo: '3' },
  )
  check(
    { foo: '1', exported_foo: '2' },
    { foo: '3', exported_foo: '4' },
    { foo: '1', exported_foo: '2', exported_exported_foo: '3', exported_exported_exported_foo: '4' },
  )
  check(
    { foo: '0', exported_exported_foo: '1' },
    { foo: '1', exported_foo: '2' },
    { foo: '0', exported_foo: '2', exported_exported_foo: '1', exported_exported_exported_foo: '1' },
  )
  check({ foo: '1' }, { foo: '2', exported_foo: '' }, { foo: '1', exported_foo: '2' })
})

test('with honor_labels the page has the last word, also with nothing', () => {
  const check = (ofTarget: Labels, told: Labels, want: Labels) =>
    assert.deepEqual(series({ honorLabels: true }, ofTarget, told), { __name__: 'm', ...want })
  check({ job: 'j', instance: 'i' }, { job: 'own' }, { job: 'own', instance: 'i' })
  check({ job: 'j' }, { job: '' }, {})
  check({ job: 'j' }, { exported_job: 'x' }, { job: 'j', exported_job: 'x' })
})

test('metric_relabel_configs see the name, and may change or drop the series', () => {
  const of = (...written: unknown[]) => series({ metricRelabel: rules(...written) }, { job: 'j' }, { a: '1' })
  assert.deepEqual(of({ target_label: '__name__', replacement: 'n' }), { __name__: 'n', job: 'j', a: '1' })
  assert.deepEqual(of({ source_labels: ['__name__', 'job', 'a'], target_label: 'all' }), {
    ...{ __name__: 'm', job: 'j', a: '1', all: 'm;j;1' },
  })
  assert.equal(of({ action: 'drop', source_labels: ['__name__'], regex: 'm' }), undefined)
  assert.equal(of({ action: 'keep', source_labels: ['a'], regex: '2' }), undefined)
  assert.equal(of({ action: 'labeldrop', regex: '.*' }), undefined)
  assert.match(String(of({ action: 'labeldrop', regex: '__name__' })), /removed the name of m; keep __name__/)
  assert.match(String(of({ target_label: '__name__', replacement: '' })), /removed the name of m/)
})

test('external labels are added where there is none of the name', () => {
  const externalLabels = new Map([
    ['region', 'eu'],
    ['job', 'external'],
    ['none', ''],
    ['__name__', 'other'],
  ])
  assert.deepEqual(series({ externalLabels }, { job: 'j' }, {}), { __name__: 'm', job: 'j', region: 'eu' })
  const metricRelabel = rules({ action: 'labeldrop', regex: 'job' })
  assert.deepEqual(series({ externalLabels, metricRelabel }, { job: 'j' }, { region: 'us' }), {
    ...{ __name__: 'm', job: 'external', region: 'us' },
  })
})

test('limits are those of Prometheus: with the name, in bytes, before external labels', () => {
  const { limits } = scrapeJob()
  const externalLabels = new Map([['a_very_long_name', 'and a very long value']])
  const of = (own: Partial<ScrapeJob['limits']>, told: Labels = { b: 'éé' }) =>
    series({ limits: { ...limits, ...own }, externalLabels }, { job: 'j' }, told)
  assert.equal(typeof of({ labels: 3 }), 'object')
  assert.match(
    String(of({ labels: 2 })),
    /^label_limit exceeded: a series of m has 3 labels; the limit is 2$/,
  )
  assert.equal(typeof of({ labelNameLength: 8 }), 'object')
  assert.match(
    String(of({ labelNameLength: 7 })),
    /^label_name_length_limit exceeded: label __name__ of m has 8 bytes/,
  )
  assert.equal(typeof of({ labelValueLength: 4 }), 'object')
  assert.match(
    String(of({ labelValueLength: 3 })),
    /^label_value_length_limit exceeded: the value of b of m has 4 bytes/,
  )
  assert.ok(String(of({ labelValueLength: 3 }, { [`b${'c'.repeat(9999)}`]: 'long' })).length < 300)
})
