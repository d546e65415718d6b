import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scrapeJob } from '../../../../test/helpers/scrape-job.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { durationOf, durationText } from './duration-text.ts'
import { compileRelabel, type RelabelRule } from './relabel.ts'
import type { ScrapeJob, TargetGroup } from './scrape-job.ts'
import { readTargets, targetsOf } from './targets.ts'

type Labels = Readonly<Record<string, string>>

const group = (targets: readonly (string | Labels)[], labels: Labels = {}, source = 'test'): TargetGroup => ({
  source,
  targets: targets.map(
    each => new Map(Object.entries(typeof each === 'string' ? { __address__: each } : each)),
  ),
  labels: new Map(Object.entries(labels)),
})
const rules = (...written: unknown[]) => written.map(each => compileRelabel(each) as RelabelRule)

/** The one target of an address: what is asked and what its series get, or why it is none. */
function told(target: string | Labels, own: Partial<ScrapeJob> = {}, labels: Labels = {}) {
  const { targets, dropped } = targetsOf(scrapeJob(own), [group([target], labels)])
  const [found] = targets
  return found === undefined
    ? dropped[0]!.reason
    : { url: found.url, labels: Object.fromEntries(found.labels), times: [found.intervalMs, found.timeoutMs] }
}
const urlOf = (target: string | Labels, own: Partial<ScrapeJob> = {}, labels: Labels = {}) => {
  const found = told(target, own, labels)
  return typeof found === 'string' ? found : found.url
}
const labelsOf = (target: string | Labels, own: Partial<ScrapeJob> = {}, labels: Labels = {}) => {
  const found = told(target, own, labels)
  return typeof found === 'string' ? found : found.labels
}

test('a target gets labels of its own, of its group and of its job, in this order', () => {
  assert.deepEqual(labelsOf('a:1'), { job: 'job', instance: 'a:1' })
  assert.deepEqual(labelsOf('a:1', {}, { job: 'x', env: 'y' }), { job: 'x', env: 'y', instance: 'a:1' })
  assert.deepEqual(labelsOf({ __address__: 'a:1', env: 'own' }, {}, { env: 'group' }), {
    ...{ job: 'job', instance: 'a:1', env: 'own' },
  })
  assert.deepEqual(labelsOf({ __address__: 'a:1', env: '' }, {}, { env: 'group' }), {
    ...{ job: 'job', instance: 'a:1' },
  })
  assert.deepEqual(labelsOf('a:1', {}, { job: '', instance: 'i' }), { job: 'job', instance: 'i' })
  assert.deepEqual(labelsOf('a', {}, { __meta_x: '1', __tmp: '2', __x: '3' }), { job: 'job', instance: 'a' })
  assert.deepEqual(labelsOf('a', {}, { 'with.dot é': '1' }), { job: 'job', instance: 'a', 'with.dot é': '1' })
})

test('the URL is made of labels, as Prometheus writes it', () => {
  assert.equal(urlOf('a:1'), 'http://a:1/metrics')
  assert.equal(urlOf('a', { scheme: 'https' }), 'https://a/metrics')
  assert.equal(urlOf('[::1]:9100'), 'http://[::1]:9100/metrics')
  assert.equal(urlOf('a', {}, { __scheme__: 'https', __metrics_path__: '/x' }), 'https://a/x')
  assert.equal(urlOf('a', { metricsPath: 'x/y' }), 'http://a/x/y')
  assert.equal(urlOf('a', { metricsPath: '/x?y=1' }), 'http://a/x%3Fy=1')
  assert.equal(
    urlOf('a', { metricsPath: "/ü (a)'*!~$&+,:;=@" }),
    'http://a/%C3%BC%20%28a%29%27%2A%21~$&+,:;=@',
  )
  assert.equal(urlOf('a', { metricsPath: '/100%' }), 'http://a/100%25')
  assert.equal(
    urlOf('a', { params: { q: ['1', '2'], b: [''], a: ['x y/é'] } }),
    'http://a/metrics?a=x+y%2F%C3%A9&b=&q=1&q=2',
  )
  assert.equal(
    urlOf('a', { params: { 'match[]': ['{a="b"}'] } }),
    'http://a/metrics?match%5B%5D=%7Ba%3D%22b%22%7D',
  )
  assert.equal(
    urlOf('a', { params: { q: ['1', '2'] } }, { __param_q: '3', __param_r: '4' }),
    'http://a/metrics?q=3&q=2&r=4',
  )
  const blackbox = rules(
    { source_labels: ['__address__'], target_label: '__param_target' },
    { source_labels: ['__param_target'], target_label: 'instance' },
    { target_label: '__address__', replacement: '127.0.0.1:9115' },
  )
  assert.deepEqual(told('https://example.com/', { params: { module: ['http'] }, relabel: blackbox }), {
    url: 'http://127.0.0.1:9115/metrics?module=http&target=https%3A%2F%2Fexample.com%2F',
    labels: { job: 'job', instance: 'https://example.com/' },
    times: [60_000, 10_000],
  })
})

test('a socket is an address', () => {
  assert.equal(urlOf('unix:/run/x.sock'), 'unix:/run/x.sock:/metrics')
  assert.equal(urlOf('unix:/run/x.sock', { params: { a: ['b'] }, metricsPath: '' }), 'unix:/run/x.sock:/?a=b')
  assert.deepEqual(labelsOf('unix:/run/x.sock'), { job: 'job', instance: 'unix:/run/x.sock' })
  assert.match(urlOf('unix:/run/x:y'), /not a socket; use unix:\/path/)
  assert.match(urlOf('unix:x'), /not a socket/)
  assert.match(urlOf(`unix:/${'x'.repeat(108)}`), /107 bytes/)
  assert.match(urlOf('unix:/x', { scheme: 'https' }), /set __scheme__ to http/)
})

test('what is no target says why, in words', () => {
  const fault = (target: string | Labels, words: RegExp, own: Partial<ScrapeJob> = {}) => {
    const found = told(target, own)
    assert.equal(typeof found, 'string', String(target))
    assert.match(String(found), words)
  }
  fault({ x: 'y' }, /no __address__; set it in the source/)
  fault('http://a/metrics', /"http:\/\/a\/metrics" is a URL; use host:port/)
  fault('a/metrics', /has a path; set it as __metrics_path__/)
  fault('::1', /is not host:port; .*\[::1\]:port/)
  fault('a:b', /is not host:port/)
  fault('a b', /is not host:port/)
  fault('u@a', /is not host:port/)
  fault('a\n', /is not host:port/)
  fault(':80', /is not host:port/)
  fault('a:0', /outside 1 to 65535/)
  fault('a:65536', /outside 1 to 65535/)
  fault({ __address__: 'a', __scheme__: 'ftp' }, /unknown __scheme__ "ftp"; use http or https/)
  fault('a', /unknown __scheme__ ""/, {
    relabel: rules({ target_label: '__scheme__', replacement: '' }),
  })
  fault('a', /^relabelling$/, { relabel: rules({ action: 'drop', source_labels: ['__address__'] }) })
  fault({ __address__: 'a', x: '\ud800' }, /value of x is not valid Unicode/)
  fault({ __address__: 'a', '': 'x' }, /a label has no name/)
})

test('labels can ask for another interval and timeout within bounds', () => {
  const times = (interval: string, timeout: string) => {
    const found = told({ __address__: 'a', __scrape_interval__: interval, __scrape_timeout__: timeout })
    return typeof found === 'string' ? found : found.times
  }
  assert.deepEqual(times('30s', '5s'), [30_000, 5000])
  assert.deepEqual(times('1h30m', '500ms'), [5_400_000, 500])
  assert.deepEqual(times('', ''), [60_000, 10_000])
  assert.match(
    String(times('soon', '5s')),
    /__scrape_interval__ "soon" is not a duration; use one such as 30s/,
  )
  assert.match(String(times('1.5s', '1s')), /is not a duration/)
  assert.match(String(times('0', '1s')), /not between 100ms and 24d/)
  assert.match(String(times('1ms', '1ms')), /not between/)
  assert.match(String(times('30d', '1s')), /not between/)
  assert.match(String(times('30s', '0s')), /__scrape_timeout__ "0s" is not between 1ms/)
  assert.match(
    String(times('5s', '')),
    /__scrape_timeout__ 10s is longer than __scrape_interval__ 5s; set a shorter/,
  )
  const { targets } = targetsOf(scrapeJob({ intervalMs: 20, timeoutMs: 10 }), [group(['a'])])
  assert.equal(targets[0]?.intervalMs, 20)
})

test('durations are written and read as in Prometheus', () => {
  for (const [text, ms] of [
    ['0s', 0],
    ['1ms', 1],
    ['1s500ms', 1500],
    ['1m30s', 90_000],
    ['1h', 3_600_000],
    ['1d1s', 86_401_000],
    ['1w', 604_800_000],
    ['8d', 691_200_000],
    ['1y', 31_536_000_000],
  ] as const)
    assert.deepEqual([durationText(ms), durationOf(text)], [text, ms])
  for (const text of ['', '1', '-1s', '1.5s', '1s1m', '1S', ' 1s', '1s1s', `${'1'.repeat(80)}s`])
    assert.equal(durationOf(text), undefined, text)
  assert.equal(durationOf('0'), 0)
})

test('what relabelling dropped is told with the labels of before, the first thousand of them', () => {
  const relabel = rules(
    { target_label: 'x', replacement: 'changed' },
    { action: 'drop', source_labels: ['__address__'], regex: 'd.*' },
  )
  const addresses = Array.from({ length: 1500 }, (_, i) => `d${i}`)
  const { targets, dropped, droppedTotal } = targetsOf(scrapeJob({ relabel }), [
    group([...addresses, 'a'], { __meta_x: 'y' }),
  ])
  assert.deepEqual([targets.length, dropped.length, droppedTotal], [1, 1000, 1500])
  assert.deepEqual(Object.fromEntries(dropped[0]!.discovered), {
    __address__: 'd0',
    __meta_x: 'y',
    __metrics_path__: '/metrics',
    __scheme__: 'http',
    __scrape_interval__: '1m',
    __scrape_timeout__: '10s',
    job: 'job',
  })
  assert.deepEqual([dropped[0]!.job, dropped[0]!.reason], ['job', 'relabelling'])
  assert.equal(targets[0]!.labels.get('x'), 'changed')
  assert.equal(targets[0]!.discovered.get('x'), undefined)
})

test('the same URL and labels are one target, known by the same name everywhere', () => {
  const job = scrapeJob()
  const { targets } = targetsOf(job, [
    group(['a', 'a', 'b'], { __meta_pod: '1' }),
    group(['a'], { __meta_pod: '2' }),
    group(['a'], { x: 'y' }),
  ])
  assert.deepEqual(
    targets.map(({ url, labels }) => [url, labels.get('x') ?? '']),
    [
      ['http://a/metrics', ''],
      ['http://b/metrics', ''],
      ['http://a/metrics', 'y'],
    ],
  )
  assert.equal(new Set(targets.map(({ id }) => id)).size, 3)
  assert.match(targets[0]!.id, /^[\w-]{22}$/)
  assert.equal(targets[0]!.id, 'vRxX8ozz8osN7gOCxKXwXl')
  const one = (labels: Labels, own: Partial<ScrapeJob> = {}) =>
    targetsOf(scrapeJob(own), [group(['a'], labels)]).targets[0]!.id
  assert.equal(one({ x: '1', y: '2' }), one({ y: '2', x: '1' }))
  assert.notEqual(one({ x: '1' }), one({ x: '2' }))
  assert.notEqual(one({ job: 'j' }), one({ job: 'j' }, { name: 'other' }))
  assert.notEqual(one({}), one({ __param_x: 'y' }))
})

test('beyond the limit there are none, and each says so', () => {
  const { limits } = scrapeJob()
  const job = scrapeJob({ limits: { ...limits, targets: 2 } })
  assert.equal(targetsOf(job, [group(['a', 'b', 'b'])]).targets.length, 2)
  const { targets, dropped, droppedTotal } = targetsOf(job, [group(['a', 'b']), group(['c'])])
  assert.deepEqual([targets.length, droppedTotal], [0, 3])
  assert.match(dropped[2]!.reason, /^target_limit exceeded: 3 targets, the limit is 2; raise target_limit/)
  assert.equal(dropped[2]!.discovered.get('__address__'), 'c')
})

test('agents that share the targets take each of them once', () => {
  const groups = [group(Array.from({ length: 300 }, (_, i) => `a${i}`))]
  const parts = [0, 1, 2].map(index => targetsOf(scrapeJob(), groups, { index, count: 3, replicas: 1 }))
  const ids = parts.flatMap(({ targets }) => targets.map(({ id }) => id))
  assert.deepEqual([ids.length, new Set(ids).size], [300, 300])
  for (const { targets, droppedTotal, dropped } of parts) {
    assert.ok(targets.length > 50)
    assert.deepEqual([droppedTotal, dropped[0]!.reason], [300 - targets.length, 'shard'])
  }
})

test('thousands of targets take little time', () => {
  const relabel = rules(
    { action: 'keep', source_labels: ['__meta_kubernetes_pod_annotation_scrape'], regex: 'true' },
    {
      source_labels: ['__meta_kubernetes_pod_annotation_path'],
      target_label: '__metrics_path__',
      regex: '(.+)',
    },
    {
      source_labels: ['__address__', '__meta_kubernetes_pod_annotation_port'],
      ...{ regex: '([^:]+)(?::\\d+)?;(\\d+)', replacement: '$1:$2', target_label: '__address__' },
    },
    { action: 'labelmap', regex: '__meta_kubernetes_pod_label_(.+)' },
    { source_labels: ['__meta_kubernetes_namespace'], target_label: 'namespace' },
    { source_labels: ['__address__'], action: 'hashmod', modulus: 8, target_label: '__tmp_hash' },
  )
  const groups = Array.from({ length: 5000 }, (_, i) =>
    group([`10.0.${i >> 8}.${i & 255}:80`], {
      __meta_kubernetes_namespace: 'default',
      __meta_kubernetes_pod_annotation_scrape: 'true',
      __meta_kubernetes_pod_annotation_port: '9100',
      __meta_kubernetes_pod_label_app: 'web',
      __meta_kubernetes_pod_label_version: 'v1',
      __meta_kubernetes_pod_name: `web-${i}`,
    }),
  )
  const job = scrapeJob({ relabel })
  const timed = () => {
    const started = performance.now()
    const { targets } = targetsOf(job, groups)
    assert.equal(targets.length, 5000)
    return performance.now() - started
  }
  const [first, again] = [timed(), timed()]
  if (soak) console.log(`5000 targets: ${first.toFixed(1)} ms, then ${again.toFixed(1)} ms`)
  assert.ok(first < 10_000, `${first} ms`)
})

test('a group that is told again keeps its targets, until the job is another', () => {
  const [job, groups] = [scrapeJob(), [group(['a', 'b/c'])]]
  const [target] = targetsOf(job, groups).targets
  assert.equal(targetsOf(job, groups).targets[0], target)
  assert.equal(targetsOf(job, groups).droppedTotal, 1)
  assert.equal(targetsOf({ ...job, metricsPath: '/x' }, groups).targets[0]?.url, 'http://a/x')
})

test('many new targets are read in turns with others', async () => {
  const job = scrapeJob({ relabel: rules({ action: 'labelmap', regex: '__meta_(.+)' }) })
  const addresses = Array.from({ length: soak ? 20_000 : 5000 }, (_, i) => `a${i}`)
  const groups = [group(addresses, { __meta_x: 'y' }), group(['b', 'c/d'])]
  let turns = 0
  let busy = true
  const count = () => {
    turns++
    if (busy) setImmediate(count)
  }
  setImmediate(count)
  await readTargets(job, groups).finally(() => {
    busy = false
  })
  assert.ok(turns > 2, `${turns} turns`)
  const { targets, droppedTotal } = targetsOf(job, groups)
  assert.deepEqual([targets.length, droppedTotal], [addresses.length + 1, 1])
  assert.deepEqual(
    targets.map(({ id }) => id),
    targetsOf({ ...job }, groups).targets.map(({ id }) => id),
  )
})
