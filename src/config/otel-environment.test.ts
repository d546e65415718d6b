import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, type LoadedConfig, loadConfig } from './index.ts'

function load(env: Record<string, string>): LoadedConfig {
  return loadConfig({ explicit: false, env, cwd: '/nonexistent', systemFile: '/nonexistent/config.yaml' })
}

type Otlp = Config['otlp']['traces']

const table: readonly [
  suffix: string,
  good: string,
  read: (otlp: Otlp) => unknown,
  want: unknown,
  bad: string,
][] = [
  ['ENDPOINT', 'http://collector:4317', otlp => otlp.endpoint, 'http://collector:4317', 'ftp://x'],
  ['PROTOCOL', 'http/protobuf', otlp => otlp.protocol, 'http/protobuf', 'thrift'],
  ['COMPRESSION', 'none', otlp => otlp.compression, 'none', 'lz4'],
  ['HEADERS', 'api-key=a%20b, x=1', otlp => otlp.headers, { 'api-key': 'a b', x: '1' }, 'no equals sign'],
  ['TIMEOUT', '2500', otlp => otlp.timeout, 2500, '10s'],
  ['INSECURE', 'TRUE', otlp => otlp.insecure, true, 'yes'],
  ['CERTIFICATE', '/ca.pem', otlp => otlp.tls.ca_file, '/ca.pem', ''],
  ['CLIENT_CERTIFICATE', '/c.pem', otlp => otlp.tls.cert_file, '/c.pem', ''],
  ['CLIENT_KEY', '/k.pem', otlp => otlp.tls.key_file, '/k.pem', ''],
]

/** A client certificate is of no use without its key. */
const pair = {
  CLIENT_CERTIFICATE: { OTEL_EXPORTER_OTLP_CLIENT_KEY: '/k.pem' },
  CLIENT_KEY: { OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: '/c.pem' },
} as Record<string, Record<string, string>>

const signalPair = {
  CLIENT_CERTIFICATE: { OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY: '/k.pem' },
  CLIENT_KEY: { OTEL_EXPORTER_OTLP_LOGS_CLIENT_CERTIFICATE: '/c.pem' },
} as Record<string, Record<string, string>>

test('the general variables set the general keys and every signal', () => {
  for (const [suffix, good, read, want] of table) {
    const { config, problems, warnings } = load({ [`OTEL_EXPORTER_OTLP_${suffix}`]: good, ...pair[suffix] })
    assert.deepEqual([problems, warnings], [[], []], suffix)
    for (const signal of ['traces', 'metrics', 'logs', 'profiles'] as const) {
      assert.deepEqual(read(config.otlp[signal]), want, suffix)
    }
  }
})

test('the variables of a signal set that signal alone, and win over the general ones', () => {
  for (const [suffix, good, read, want] of table) {
    const { config, problems, warnings } = load({
      [`OTEL_EXPORTER_OTLP_LOGS_${suffix}`]: good,
      ...signalPair[suffix],
    })
    assert.deepEqual([problems, warnings], [[], []], suffix)
    assert.deepEqual(read(config.otlp.logs), want, suffix)
    assert.notDeepEqual(read(config.otlp.traces), want, suffix)
  }
  const { config } = load({ OTEL_EXPORTER_OTLP_ENDPOINT: 'a:1', OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'b:2' })
  assert.equal(config.otlp.logs.endpoint, 'b:2')
  assert.equal(config.otlp.traces.endpoint, 'a:1')
})

test('a variable that makes no sense is ignored with a warning, and an empty one counts as unset', () => {
  for (const [suffix, , read, , bad] of table) {
    const name = `OTEL_EXPORTER_OTLP_${suffix}`
    const { config, problems, warnings } = load({ [name]: bad })
    assert.deepEqual(problems, [], name)
    assert.equal(warnings.length, bad === '' ? 0 : 1, name)
    if (bad !== '') assert.ok(warnings[0]!.includes(name))
    assert.deepEqual(read(config.otlp.traces), read(load({}).config.otlp.traces), name)
  }
  for (const bad of ['a=%zz', '=x', 'a', 'bad name=1', 'a=\u0001']) {
    assert.equal(load({ OTEL_EXPORTER_OTLP_HEADERS: bad }).warnings.length, 1, bad)
  }
})

test('a warning about headers does not repeat their values', () => {
  const { warnings } = load({ OTEL_EXPORTER_OTLP_HEADERS: 'authorization=s3cret%01' })
  assert.equal(warnings.length, 1)
  assert.doesNotMatch(warnings[0]!, /s3cret/)
})

test('the scheme of an endpoint decides about TLS', () => {
  const check = (env: Record<string, string>, want: boolean) =>
    assert.equal(load(env).config.otlp.traces.insecure, want)
  check({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:1' }, true)
  check({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a:1', OTEL_EXPORTER_OTLP_INSECURE: 'true' }, false)
  check({ OTEL_EXPORTER_OTLP_ENDPOINT: 'a:1', OTEL_EXPORTER_OTLP_INSECURE: 'true' }, true)
  check(
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a:1', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'HTTP://b:1' },
    true,
  )
})

test('the form of metrics follows its variables', () => {
  const name = (what: string) => `OTEL_EXPORTER_OTLP_METRICS_${what}`
  const check = (env: Record<string, string>, want: readonly [string, string]) => {
    const { config, warnings } = load(env)
    assert.deepEqual(
      [config.otlp.metrics.temporality, config.otlp.metrics.histograms, warnings],
      [...want, []],
    )
  }
  check({}, ['cumulative', 'explicit'])
  check({ [name('TEMPORALITY_PREFERENCE')]: 'Delta' }, ['delta', 'explicit'])
  check({ [name('TEMPORALITY_PREFERENCE')]: 'lowmemory' }, ['delta', 'explicit'])
  check({ [name('TEMPORALITY_PREFERENCE')]: 'cumulative' }, ['cumulative', 'explicit'])
  const aggregation = name('DEFAULT_HISTOGRAM_AGGREGATION')
  check({ [aggregation]: 'base2_exponential_bucket_histogram' }, ['cumulative', 'exponential'])
  check({ [aggregation]: 'explicit_bucket_histogram' }, ['cumulative', 'explicit'])
  const { config, warnings } = load({ [aggregation]: 'linear', [name('TEMPORALITY_PREFERENCE')]: 'x' })
  assert.equal(warnings.length, 2)
  assert.equal(config.otlp.metrics.temporality, 'cumulative')
})

test('names and attributes go to the agent and to what is exported', () => {
  const { config } = load({ OTEL_RESOURCE_ATTRIBUTES: 'service.name=edge,deployment.environment.name=a%2Cb' })
  assert.equal(config.service_name, 'edge')
  assert.deepEqual(config.resource.attributes, { 'deployment.environment.name': 'a,b' })
  const both = load({ OTEL_RESOURCE_ATTRIBUTES: 'service.name=edge', OTEL_SERVICE_NAME: 'core' })
  assert.equal(both.config.service_name, 'core')
})

test('OTEL_SDK_DISABLED turns export off', () => {
  const { config, warnings } = load({ OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'a:1' })
  assert.deepEqual(
    [config.otlp.traces, config.otlp.metrics, config.otlp.logs, config.otlp.profiles].map(
      signal => signal.enabled,
    ),
    [false, false, false, false],
  )
  assert.equal(warnings.length, 1)
  assert.equal(load({ OTEL_SDK_DISABLED: 'false' }).config.otlp.traces.enabled, true)
})

test('an endpoint for OTLP over HTTP, meant for other programs, does not stop the agent', () => {
  const { problems, config } = loadConfig({
    explicit: false,
    cwd: '/nonexistent',
    systemFile: '/nonexistent',
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/otlp' },
  })
  assert.deepEqual(problems, [])
  assert.equal(config.otlp.traces.endpoint, 'http://collector:4318/otlp')
})
