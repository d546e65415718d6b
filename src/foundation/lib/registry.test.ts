import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from './registry.ts'

function check(registry: Registry, want: string[], openMetrics = false) {
  assert.deepEqual(registry.write(openMetrics).split('\n'), [...want, ''])
}

test('a counter without labels is there from the start, and counts', () => {
  const registry = new Registry()
  const sent = registry.counter('sent_total', 'Things sent.').labels()
  check(registry, ['# HELP sent_total Things sent.', '# TYPE sent_total counter', 'sent_total 0'])
  sent.inc()
  sent.inc(2.5)
  check(registry, ['# HELP sent_total Things sent.', '# TYPE sent_total counter', 'sent_total 3.5'])
})

test('OpenMetrics names a counter family without _total and ends with EOF', () => {
  const registry = new Registry()
  registry.counter('sent_total', 'Says "sent".').labels().inc()
  check(registry, ['# HELP sent Says \\"sent\\".', '# TYPE sent counter', 'sent_total 1', '# EOF'], true)
})

test('label values and help are escaped', () => {
  const registry = new Registry()
  registry.gauge('size', 'One\\two\n"three".', ['path']).labels('a"b\\c\nd').set(1)
  check(registry, ['# HELP size One\\\\two\\n"three".', '# TYPE size gauge', 'size{path="a\\"b\\\\c\\nd"} 1'])
})

test('a histogram counts up to and with each bound, cumulatively', () => {
  const registry = new Registry()
  const took = registry.histogram('took_seconds', 'Time.', [0.5, 1, 10], ['who']).labels('me')
  for (const seconds of [0.5, 0.6, 1, 11]) took.observe(seconds)
  const head = ['# HELP took_seconds Time.', '# TYPE took_seconds histogram']
  const tail = [
    'took_seconds_bucket{who="me",le="+Inf"} 4',
    'took_seconds_sum{who="me"} 13.1',
    'took_seconds_count{who="me"} 4',
  ]
  check(registry, [
    ...head,
    'took_seconds_bucket{who="me",le="0.5"} 1',
    'took_seconds_bucket{who="me",le="1"} 3',
    'took_seconds_bucket{who="me",le="10"} 3',
    ...tail,
  ])
  check(
    registry,
    [
      ...head,
      'took_seconds_bucket{who="me",le="0.5"} 1',
      'took_seconds_bucket{who="me",le="1.0"} 3',
      'took_seconds_bucket{who="me",le="10.0"} 3',
      ...tail,
      '# EOF',
    ],
    true,
  )
})

test('a histogram without labels has only le', () => {
  const registry = new Registry()
  registry.histogram('h', 'H.', [1]).labels().observe(1)
  check(registry, [
    '# HELP h H.',
    '# TYPE h histogram',
    'h_bucket{le="1"} 1',
    'h_bucket{le="+Inf"} 1',
    'h_sum 1',
    'h_count 1',
  ])
})

test('what is no finite number is written as the formats spell it', () => {
  const registry = new Registry()
  const gauge = registry.gauge('g', 'G.', ['is'])
  gauge.labels('nan').set(Number.NaN)
  gauge.labels('inf').set(Number.POSITIVE_INFINITY)
  gauge.labels('neg').set(Number.NEGATIVE_INFINITY)
  check(registry, [
    '# HELP g G.',
    '# TYPE g gauge',
    'g{is="nan"} NaN',
    'g{is="inf"} +Inf',
    'g{is="neg"} -Inf',
  ])
})

test('a collector is asked each time the page is written', () => {
  const registry = new Registry()
  let queued = 1
  registry.collector('queued', 'Q.', 'gauge', ['signal'], emit => {
    emit(queued, 'traces')
    emit(queued * 2, 'logs')
  })
  check(registry, [
    '# HELP queued Q.',
    '# TYPE queued gauge',
    'queued{signal="traces"} 1',
    'queued{signal="logs"} 2',
  ])
  queued = 5
  check(registry, [
    '# HELP queued Q.',
    '# TYPE queued gauge',
    'queued{signal="traces"} 5',
    'queued{signal="logs"} 10',
  ])
})

test('the same label values give the same series', () => {
  const family = new Registry().counter('c_total', 'C.', ['a', 'b'])
  assert.equal(family.labels('x', 'y'), family.labels('x', 'y'))
  assert.notEqual(family.labels('x', 'y'), family.labels('xy', ''))
})

test('a family has a bounded number of series, and loses no count to the bound', () => {
  const registry = new Registry()
  const family = registry.counter('c_total', 'C.', ['path'])
  for (let i = 0; i < 1500; i++) family.labels(`/${i}`).inc()
  const lines = registry
    .write()
    .split('\n')
    .filter(line => line.startsWith('c_total{'))
  assert.equal(lines.length, 1001)
  assert.equal(lines.at(-1), 'c_total{path="other"} 500')
})

test('a metric that the formats do not allow is refused', () => {
  const check = (declare: (registry: Registry) => unknown, want: RegExp) =>
    assert.throws(() => declare(new Registry()), want)
  check(r => r.gauge('9lives', ''), /9lives: not a metric name/)
  check(r => r.counter('sent', ''), /must end in _total/)
  check(r => r.gauge('g', '', ['le']), /le cannot be a label name/)
  check(r => r.gauge('g', '', ['a-b']), /a-b cannot be a label name/)
  check(r => r.gauge('g', '', ['a']).labels(), /0 label values for 1 names/)
  check(r => {
    r.gauge('g', '')
    r.gauge('g', '')
  }, /declared already/)
})
