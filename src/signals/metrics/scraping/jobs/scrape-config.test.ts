import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { readScraping } from '../../../../../test/helpers/scrape-configs.ts'
import { soak } from '../../../../../test/helpers/soak.ts'
import { relabel } from '../relabel.ts'
import type { ScrapeJob } from '../scrape-job.ts'

const fixtures = join(import.meta.dirname, '../../../../../test/fixtures/scrape-configs')

function fixture(name: string): ScrapeJob[] {
  const { jobs, problems } = readScraping(readFileSync(join(fixtures, name), 'utf8'))
  assert.deepEqual(problems, [], name)
  return [...jobs]
}

/** The only job of an entry in flow style. */
function jobOf(entry: string): ScrapeJob {
  const { jobs, problems } = readScraping(`scrape_configs: [{job_name: j, ${entry}}]`)
  assert.deepEqual(problems, [], entry)
  assert.equal(jobs.length, 1)
  return jobs[0]!
}

test('configurations that people have are taken as they are', () => {
  const names = readdirSync(fixtures)
  assert.ok(names.length >= 30)
  for (const name of names) for (const job of fixture(name)) assert.notEqual(job.name, '', name)
})

test('everything that a job says is in the job', () => {
  const [job] = fixture('everything-of-a-job.yml') as [ScrapeJob]
  const { relabel: rules, metricRelabel, ...rest } = job
  assert.deepEqual(rest, {
    name: 'service-x',
    intervalMs: 50_000,
    timeoutMs: 5000,
    scheme: 'https',
    metricsPath: '/my_path',
    params: { 'collect[]': ['cpu', 'meminfo', 'diskstats'] },
    honorLabels: true,
    honorTimestamps: false,
    trackTimestampsStaleness: false,
    compression: true,
    lenient: false,
    limits: {
      bodyBytes: 10 * 1024 * 1024,
      samples: 1000,
      labels: 35,
      labelNameLength: 210,
      labelValueLength: 210,
      targets: 35,
    },
    access: {
      headers: {},
      basic: { username: 'admin_name', password: { text: 'multiline\nmysecret\ntest' } },
      authorization: undefined,
      tls: { caFile: '', certFile: '', keyFile: '', serverName: '', insecureSkipVerify: false },
      followRedirects: true,
      proxyUrl: '',
    },
    sources: [
      {
        kind: 'file',
        patterns: ['/base/foo/*.slow.json', '/base/foo/*.slow.yml', '/base/single/file.yml'],
        refreshMs: 600_000,
      },
      { kind: 'file', patterns: ['/base/bar/*.yaml'], refreshMs: 300_000 },
    ],
    externalLabels: new Map(),
  })
  assert.deepEqual(
    rules.map(({ action, targetLabel }) => `${action} ${targetLabel}`),
    ['replace job', 'replace cde', 'replace abc', 'replace abc', 'keepequal abc', 'dropequal abc'],
  )
  assert.equal(metricRelabel[0]!.action, 'drop')
})

test('what a job leaves out is as it is for all', () => {
  const { jobs, problems } = readScraping(`
scrape_interval: 20s
scrape_timeout: 15s
sample_limit: 7
body_size_limit: 1Mi
honor_labels: true
honor_timestamps: false
lenient: true
external_labels: {cluster: a, empty: ""}
scrape_configs: [{job_name: a}, {job_name: b, scrape_interval: 5s, honor_labels: false, sample_limit: 0, metrics_path: , scheme: ""}]`)
  assert.deepEqual(problems, [])
  for (const job of jobs) {
    assert.equal(job.limits.samples, 7)
    assert.equal(job.limits.bodyBytes, 1024 * 1024)
    assert.deepEqual([job.honorTimestamps, job.lenient, job.scheme], [false, true, 'http'])
    assert.equal(job.metricsPath, '/metrics')
    assert.equal(job.externalLabels.get('cluster'), 'a')
  }
  assert.deepEqual(
    jobs.map(({ intervalMs, timeoutMs, honorLabels }) => [intervalMs, timeoutMs, honorLabels]),
    [
      [20_000, 15_000, true],
      [5000, 5000, false],
    ],
  )
})

test('durations are those of Prometheus', () => {
  const intervals = fixture('intervals.yml').map(({ intervalMs, timeoutMs }) => [intervalMs, timeoutMs])
  const day = 86_400_000
  assert.deepEqual(intervals, [
    [500, 250],
    [5_400_000, 10_000],
    [day, 60_000],
    [60_000, 10_000],
    [5000, 5000],
    [7 * day, 10_000],
  ])
})

test('sizes count in 1024s, as Prometheus has them', () => {
  const check = (written: string, bytes: number) =>
    assert.equal(jobOf(`body_size_limit: ${written}`).limits.bodyBytes, bytes)
  check('10MB', 10 * 1024 * 1024)
  check('10KiB', 10_240)
  check('1.5MB', 1.5 * 1024 * 1024)
  check('1MB512KB', 1.5 * 1024 * 1024)
  check('4096B', 4096)
  check('0', 64 * 1024 * 1024)
})

test('numbers and booleans of YAML are texts where texts are asked for', () => {
  const [job] = fixture('scalars-of-yaml.yml') as [ScrapeJob]
  assert.equal(job.name, '9100')
  assert.deepEqual(job.params, { debug: ['1'], verbose: ['true'], version: ['1.10'] })
  const [{ groups }] = job.sources as unknown as [{ groups: { labels: Map<string, string> }[] }]
  const labels = new Map(groups[0]!.labels)
  assert.deepEqual([...labels.values()], ['12', 'true', '1.10', ''])
  assert.ok(relabel(job.relabel, labels))
  assert.equal(labels.get('row'), '007')
  assert.equal(labels.get('both'), '12true')
  assert.equal(labels.get('short'), '1.10')
})

test('merge keys bring what a map does not say itself', () => {
  const jobs = fixture('defaults-by-merge-key.yml')
  assert.deepEqual(
    jobs.map(({ name, scheme, metricsPath, intervalMs, access }) => [
      name,
      scheme,
      metricsPath,
      intervalMs,
      access.tls.caFile,
      access.tls.serverName,
    ]),
    [
      ['first', 'http', '/metrics', 10_000, '/base/ca.pem', ''],
      ['second', 'https', '/metrics', 10_000, '/base/ca.pem', 'second.example.org'],
      ['third', 'https', '/m', 10_000, '/base/ca.pem', ''],
    ],
  )
})

test('who asks is told in every form that Prometheus has', () => {
  const [old, older, newer] = fixture('old-bearer-token.yml') as [ScrapeJob, ScrapeJob, ScrapeJob]
  assert.deepEqual(old.access.authorization, {
    type: 'Bearer',
    credentials: { file: '/base/valid_token_file' },
  })
  assert.deepEqual(older.access.authorization, { type: 'Bearer', credentials: { text: 'mysecret' } })
  assert.deepEqual(newer.access.authorization, { type: 'Token', credentials: { text: 'mysecret' } })
  const [tls, proxied] = fixture('tls-client.yml') as [ScrapeJob, ScrapeJob]
  assert.deepEqual(tls.access.tls, {
    caFile: '/etc/ssl/ca.crt',
    certFile: '/base/valid_cert_file',
    keyFile: '/base/valid_key_file',
    serverName: 'node.example.org',
    insecureSkipVerify: false,
  })
  assert.equal(proxied.access.proxyUrl, 'http://user:pass@proxy.example.org:3128')
  assert.equal(proxied.access.followRedirects, false)
  const [{ access }] = fixture('protocols-of-3.yml') as [ScrapeJob]
  assert.deepEqual(access.headers, { 'X-Scope-OrgID': 'team-a', 'X-Api-Key': 'very-secret' })
  const { access: none } = jobOf('basic_auth: {}')
  assert.equal(none.basic, undefined)
  assert.deepEqual(jobOf('basic_auth: {username: u, password_file: p}').access.basic, {
    username: 'u',
    password: { file: '/base/p' },
  })
})

test('every kind of discovery has the defaults of Prometheus', () => {
  const check = (entry: string, want: object) => assert.deepEqual(jobOf(entry).sources, [want])
  check('dns_sd_configs: [{names: [a]}]', {
    kind: 'dns',
    names: ['a'],
    type: 'SRV',
    port: 0,
    refreshMs: 30_000,
  })
  check('dns_sd_configs: [{names: [a], type: aaaa, port: 9, refresh_interval: 1m}]', {
    kind: 'dns',
    names: ['a'],
    type: 'AAAA',
    port: 9,
    refreshMs: 60_000,
  })
  check('docker_sd_configs: [{host: unix:///var/run/docker.sock}]', {
    kind: 'docker',
    host: 'unix:///var/run/docker.sock',
    port: 80,
    hostNetworkingHost: 'localhost',
    refreshMs: 60_000,
  })
  check(
    'kubernetes_sd_configs: [{role: pod, kubeconfig_file: k, namespaces: {own_namespace: true, names: [a]}, selectors: [{role: pod, label: a=b, field: c=d}], attach_metadata: {node: true}}]',
    {
      kind: 'kubernetes',
      role: 'pod',
      kubeconfigFile: '/base/k',
      namespaces: ['a'],
      ownNamespace: true,
      labelSelector: 'a=b',
      fieldSelector: 'c=d',
      attachNodeMetadata: true,
    },
  )
  const [http] = jobOf('http_sd_configs: [{url: "http://a/", bearer_token: t}]').sources
  assert.ok(http?.kind === 'http' && http.refreshMs === 60_000)
  assert.deepEqual(http.access.authorization, { type: 'Bearer', credentials: { text: 't' } })
})

test('what changes nothing is told', () => {
  const check = (entry: string, ...want: RegExp[]) => {
    const { notes } = readScraping(`scrape_configs: [{job_name: j, ${entry}}]`)
    assert.equal(notes.length, want.length, notes.join('\n'))
    for (const [i, note] of notes.entries()) assert.match(note, want[i]!)
  }
  check(
    'extra_scrape_metrics: true',
    /^collectors\.prometheus\.scrape_configs\[0\]\.extra_scrape_metrics has no effect: /,
  )
  check(
    'enable_http2: true, scrape_protocols: [OpenMetricsText1.0.0, OpenMetricsText0.0.1, PrometheusText1.0.0, PrometheusText0.0.4]',
  )
  check('enable_http2: false, convert_classic_histograms_to_nhcb: false, native_histogram_bucket_limit: 0')
  check(
    'scrape_protocols: [PrometheusProto], scrape_native_histograms: true',
    /_protocols has no effect/,
    /native_/,
  )
  check('fallback_scrape_protocol: OpenMetricsText1.0.0', /falls back to PrometheusText0\.0\.4/)
  check('metric_name_validation_scheme: legacy', /UTF-8/)
  check('tls_config: {min_version: TLS10}', /TLS 1\.2 and 1\.3/)
  check('docker_sd_configs: [{host: "unix:///a", match_first_network: false}]', /docker_sd_configs\[0\]/)
})

test('addresses that no rule changes and that are none are told, and are no error', () => {
  const check = (entry: string, ...want: RegExp[]) => {
    const { notes, problems } = readScraping(`scrape_configs: [{job_name: j, ${entry}}]`)
    assert.deepEqual(problems, [])
    assert.equal(notes.length, want.length, notes.join('\n'))
    for (const [i, note] of notes.entries()) assert.match(note, want[i]!)
  }
  check(
    'static_configs: [{targets: ["a:80", "a:99999", "::1", "u:hunter2@a"]}]',
    /scrape_configs\[0\]\.static_configs\[0\]\.targets\[1\] is not scraped: .*a port outside 1 to 65535/,
    /targets\[2\] is not scraped: .*\[::1\]:port/,
    /targets\[3\] is not scraped: __address__ "\[REDACTED\]@a" is not host:port/,
  )
  check('scheme: https, static_configs: [{targets: ["unix:/run/x"]}]', /supports only http/)
  check('scheme: https, static_configs: [{targets: ["unix:/run/x"], labels: {__scheme__: http}}]')
  check(
    'static_configs: [{targets: ["a b"]}], relabel_configs: [{target_label: __address__, replacement: a}]',
  )
  check('metrics_path: "/m?x=y"', /scrape_configs\[0\]\.metrics_path .*use params for the query/)
})

test('no text makes the reader throw', () => {
  const parts = fc.constantFrom(
    ...[
      'job_name: a',
      'scrape_configs:',
      '\n',
      '  ',
      '- ',
      '{',
      '}',
      '[',
      ']',
      ', ',
      ': ',
      '<<: ',
      '&a ',
      '*a',
    ],
    ...[
      'static_configs: ',
      'relabel_configs: ',
      'regex: ',
      '"(',
      '"',
      'targets: ',
      'tls_config: ',
      '1',
      '~',
      '\0',
    ],
    ...[
      'http_headers: ',
      'params: ',
      'kubernetes_sd_configs: ',
      'selectors: ',
      'role: pod',
      'true',
      '-1',
      '5s',
    ],
  )
  const text = fc.array(parts, { maxLength: 30 }).map(all => `scrape_configs: ${all.join('')}`)
  fc.assert(
    fc.property(text, written => {
      readScraping(written)
    }),
    { numRuns: soak ? 50_000 : 1000 },
  )
  const tree = fc.jsonValue({ maxDepth: 3 })
  const keys = fc.constantFrom(
    ...['static_configs', 'relabel_configs', 'tls_config', 'params', 'http_headers', 'kubernetes_sd_configs'],
    ...[
      'file_sd_configs',
      'basic_auth',
      'scrape_protocols',
      'scrape_interval',
      'metric_relabel_configs',
      '<<',
    ],
  )
  fc.assert(
    fc.property(fc.dictionary(keys, tree), job => {
      readScraping(JSON.stringify({ scrape_configs: [{ job_name: 'a', ...job }] }))
    }),
    { numRuns: soak ? 50_000 : 500 },
  )
})
