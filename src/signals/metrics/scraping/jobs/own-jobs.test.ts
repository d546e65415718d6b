import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readScraping } from '../../../../../test/helpers/scrape-configs.ts'
import { relabel } from '../relabel.ts'
import type { ScrapeJob, TargetGroup } from '../scrape-job.ts'

function jobs(text: string): readonly ScrapeJob[] {
  const { jobs, problems } = readScraping(text)
  assert.deepEqual(problems, [], text)
  return jobs
}

function groupsOf({ sources }: ScrapeJob): readonly TargetGroup[] {
  return sources.flatMap(source => (source.kind === 'static' ? source.groups : []))
}

const addresses = (job: ScrapeJob) =>
  groupsOf(job).flatMap(({ targets }) => targets.map(target => target.get('__address__')))

test('nothing that is written makes no job', () => {
  assert.deepEqual(jobs(''), [])
  assert.deepEqual(jobs('scrape_interval: 5s\nenabled: false'), [])
})

test('targets that differ only in address and labels are one job', () => {
  const [first, second, ...others] = jobs(`
scrape_interval: 5s
targets:
  - {name: node, address: "a:9100"}
  - {name: node, address: "b:9100", labels: {rack: 7}}
  - {name: node, address: "c:9100", scheme: https, bearer_token: t, params: {x: y}, metrics_path: /m}`)
  assert.deepEqual(others, [])
  assert.deepEqual([first!.name, addresses(first!)], ['node', ['a:9100', 'b:9100']])
  assert.deepEqual(
    groupsOf(first!).map(({ labels }) => [...labels]),
    [
      [['job', 'node']],
      [
        ['job', 'node'],
        ['rack', '7'],
      ],
    ],
  )
  assert.deepEqual([first!.intervalMs, first!.timeoutMs, first!.scheme], [5000, 5000, 'http'])
  assert.deepEqual(
    [second!.name, second!.scheme, second!.metricsPath, second!.params],
    ['node#2', 'https', '/m', { x: ['y'] }],
  )
  assert.deepEqual(second!.access.authorization, { type: 'Bearer', credentials: { text: 't' } })
  assert.equal(groupsOf(second!)[0]!.labels.get('job'), 'node')
})

test('a job of scrape_configs keeps its name', () => {
  const named = jobs(`
targets: [{name: node, address: a}]
file_sd: [/etc/targets/*.yml]
scrape_configs: [{job_name: file_sd}, {job_name: node}]`)
  assert.deepEqual(
    named.map(({ name }) => name),
    ['file_sd', 'node', 'node#2', 'file_sd#2'],
  )
})

test('lists of targets are asked with what their own keys say, and targets are not', () => {
  const [job, ...others] = jobs(`
http_sd:
  - {url: "http://a/", basic_auth: {username: u, password: p}, headers: {X: y}, tls: {ca_file: ca.pem}}
  - {url: "http://b/", refresh_interval: 5s}`)
  assert.deepEqual(others, [])
  const [a, b] = job!.sources
  assert.ok(a?.kind === 'http' && b?.kind === 'http')
  assert.deepEqual(a.access.basic, { username: 'u', password: { text: 'p' } })
  assert.deepEqual([a.access.headers, a.access.tls.caFile], [{ X: 'y' }, 'ca.pem'])
  assert.deepEqual([a.refreshMs, b.refreshMs, b.access.basic], [60_000, 5000, undefined])
  assert.deepEqual([job!.access.basic, job!.access.headers], [undefined, {}])
})

test('limits, external labels and rules hold for own targets, too', () => {
  const [job] = jobs(`
sample_limit: 5
body_size_limit: 1Mi
lenient: true
external_labels: {cluster: a}
metric_relabel_configs: [{action: drop, source_labels: [__name__], regex: go_.*}]
targets: [{name: n, address: "unix:/run/x.sock"}]`)
  assert.deepEqual([job!.limits.samples, job!.limits.bodyBytes, job!.lenient], [5, 1024 * 1024, true])
  assert.equal(job!.externalLabels.get('cluster'), 'a')
  assert.equal(relabel(job!.metricRelabel, new Map([['__name__', 'go_threads']])), false)
  assert.deepEqual(addresses(job!), ['unix:/run/x.sock'])
})

/** What the rules of a role make of labels; undefined where they drop them. */
function annotated(role: string, labels: Record<string, string>): Record<string, string> | undefined {
  const [job] = jobs(`kubernetes_sd: [{role: ${role}}]`)
  assert.equal(job!.name, `kubernetes-${role}`)
  const all = new Map(Object.entries(labels))
  if (!relabel(job!.relabel, all)) return undefined
  return Object.fromEntries([...all].filter(([name]) => !name.startsWith('__meta_')))
}

const podAnnotation = '__meta_kubernetes_pod_annotation_prometheus_io_'

test('pods say by annotations that and where they are scraped', () => {
  const scraped = { [`${podAnnotation}scrape`]: 'true' }
  assert.equal(annotated('pod', { __address__: '10.0.0.1:80' }), undefined)
  assert.equal(
    annotated('pod', { __address__: '10.0.0.1:80', [`${podAnnotation}scrape`]: 'false' }),
    undefined,
  )
  assert.equal(annotated('pod', { ...scraped, __meta_kubernetes_pod_phase: 'Succeeded' }), undefined)
  assert.equal(annotated('pod', { ...scraped, __meta_kubernetes_pod_container_init: 'true' }), undefined)
  assert.deepEqual(
    annotated('pod', {
      ...scraped,
      __address__: '10.0.0.1:80',
      __scheme__: 'http',
      __metrics_path__: '/metrics',
      [`${podAnnotation}port`]: '9102',
      [`${podAnnotation}path`]: '/stats',
      [`${podAnnotation}scheme`]: 'https',
      [`${podAnnotation}param_format`]: 'text',
      __meta_kubernetes_namespace: 'shop',
      __meta_kubernetes_pod_name: 'web-7d4f9c-x2x1z',
      __meta_kubernetes_pod_node_name: 'node-1',
      __meta_kubernetes_pod_controller_kind: 'ReplicaSet',
      __meta_kubernetes_pod_controller_name: 'web-7d4f9c',
    }),
    {
      __address__: '10.0.0.1:9102',
      __scheme__: 'https',
      __metrics_path__: '/stats',
      __param_format: 'text',
      namespace: 'shop',
      pod: 'web-7d4f9c-x2x1z',
      node: 'node-1',
      job: 'web',
    },
  )
})

test('a port of an annotation stands behind any address', () => {
  const check = (from: string, want: string) => {
    const labels = { __address__: from, [`${podAnnotation}scrape`]: 'true', [`${podAnnotation}port`]: '9' }
    assert.deepEqual(annotated('pod', labels), { __address__: want })
  }
  check('10.0.0.1', '10.0.0.1:9')
  check('10.0.0.1:8080', '10.0.0.1:9')
  check('web.shop.svc:80', 'web.shop.svc:9')
  check('[fd00::1]:8080', '[fd00::1]:9')
  check('[fd00::1]', '[fd00::1]:9')
  check('fd00::1', '[fd00::1]:9')
  check('::1', '[::1]:9')
})

test('a job is named for what people call it', () => {
  const check = (role: string, object: string, labels: Record<string, string>, want: string) => {
    const meta = Object.entries(labels).map(([name, value]) => [`__meta_kubernetes_${name}`, value])
    const scrape = { [`__meta_kubernetes_${object}_annotation_prometheus_io_scrape`]: 'true' }
    assert.equal(annotated(role, { ...scrape, ...Object.fromEntries(meta) })?.job, want)
  }
  const pod = { pod_name: 'db-0', pod_controller_kind: 'StatefulSet', pod_controller_name: 'db' }
  check('pod', 'pod', { pod_name: 'alone' }, 'alone')
  check('pod', 'pod', pod, 'db')
  check('pod', 'pod', { ...pod, pod_label_app: 'store' }, 'store')
  check('pod', 'pod', { ...pod, pod_label_app: 's', pod_label_app_kubernetes_io_name: 'n' }, 'n')
  check('endpointslice', 'service', { service_name: 'api', pod_name: 'api-1' }, 'api')
  check('ingress', 'ingress', { ingress_name: 'front' }, 'front')
})

test('own keys that contradict each other are told', () => {
  const check = (text: string, want: RegExp) => {
    const { problems } = readScraping(text)
    assert.equal(problems.length, 1, problems.join('\n'))
    assert.match(problems[0]!, want)
  }
  const target = (keys: string) => `targets: [{name: n, ${keys}}]`
  check(
    target('address: "http://a:1/m"'),
    /^targets\[0\]\.address: .*; write "a:1", and the rest as scheme and metrics_path/,
  )
  check(target('address: a/b'), /expected host:port, \[IPv6\]:port or unix:\/path/)
  check(target('address: "a:99999"'), /expected host:port/)
  check(target('address: "::1"'), /write "\[::1\]:port"/)
  check(target('address: "unix:/run/x:y"'), /expected host:port/)
  check(target('address: "unix:/run/x", scheme: https'), /only http over sockets; delete the scheme/)
  check(target('address: a, metrics_path: "/m?x=y"'), /write "\/m", and params for the query after "\?"/)
  check(
    target('address: a, headers: {authorization: b}, bearer_token: t'),
    /bearer_token and the header Authorization; .*, delete the other/,
  )
  check(target('address: a, bearer_token: t, basic_auth: {username: u}'), /delete the other/)
  check(target('address: a, tls: {cert_file: c}'), /tls\.cert_file requires tls\.key_file/)
  check(target('address: a, headers: {Host: b}'), /svc sets this header itself/)
  check(target('address: a, labels: {"": b}'), /the label has no name/)
  check('http_sd: [{url: ""}]', /url is empty/)
  check('file_sd: [targets.txt]', /^file_sd\[0\]: expected a file that ends in \.json/)
  check('shard: {index: -2}', /^shard\.index: expected a whole number from -1/)
  check('metric_relabel_configs: [{action: keep, regex: "["}]', /^metric_relabel_configs\[0\]\.regex: /)
})
