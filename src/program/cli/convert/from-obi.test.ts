// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in the file.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { loadConfig } from '../../../config/index.ts'
import { Conversion } from './conversion.ts'
import { fromObi, knownSettings } from './from-obi.ts'
import { rows } from './obi-settings.ts'
import { groups } from './obi-unsupported.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-convert-test-'))
after(() => rmSync(directory, { recursive: true }))

function converted(text: string, env: Record<string, string> = {}) {
  const conversion = new Conversion('test')
  fromObi({ name: 'obi', path: '/base/obi', text }, conversion)
  const made = conversion.finish()
  const path = join(directory, 'made.yaml')
  writeFileSync(path, made.text)
  const { config, problems } = loadConfig({ path, explicit: true, env })
  assert.deepEqual(problems, [], made.text)
  return { ...made, config, told: made.leftOut.join('\n'), noted: made.notes.join('\n') }
}

const port = (from: number, to = from) => ({ from, to })

test('variables become keys, and each that does not is named with its reason', () => {
  const { config, told, noted, leftOut } = converted(`# of the container
OTEL_EBPF_OPEN_PORT=8080,9000-9010
OTEL_EBPF_AUTO_TARGET_EXE={*/shop,*/cart}
OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318
OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20a\${b,x-scope=1
OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=prod,service.name=me
OTEL_EBPF_KUBE_CLUSTER_NAME=blue
OTEL_EBPF_LOG_LEVEL=DEBUG
OTEL_TRACES_SAMPLER=parentbased_traceidratio
OTEL_TRACES_SAMPLER_ARG="0.1"
OTEL_METRIC_EXPORT_INTERVAL=60000
BEYLA_BPF_CONTEXT_PROPAGATION=all
BEYLA_OTEL_METRICS_FEATURES=application,network
OTEL_EBPF_PROMETHEUS_PORT=9464
OTEL_EBPF_BPF_WAKEUP_LEN=10
OTEL_EBPF_OPEN_PRT=1
OTEL_SERVICE_NAME=shop
`)
  const { instrument } = config.discovery
  assert.deepEqual(
    instrument.map(({ open_ports, exe_path }) => [open_ports, exe_path]),
    ['*/shop', '*/cart'].map(path => [[port(8080), port(9000, 9010)], path]),
  )
  const { endpoint, protocol, headers } = config.otlp
  assert.deepEqual([endpoint, protocol], ['http://collector:4318', 'http/protobuf'])
  assert.deepEqual(headers, { Authorization: 'Bearer a${b', 'x-scope': '1' })
  assert.deepEqual(config.resource.attributes, {
    'deployment.environment.name': 'prod',
    'k8s.cluster.name': 'blue',
  })
  const { sampling, flows, tcp_metrics, metrics_interval } = config.agent.ebpf.network
  assert.deepEqual([sampling.ratio, sampling.always_errors, sampling.always_slow], [0.1, false, false])
  assert.deepEqual([flows, tcp_metrics, metrics_interval, config.log_level], [true, false, 60_000, 'debug'])
  assert.match(told, /^OTEL_EBPF_OPEN_PRT: unknown; did you mean OTEL_EBPF_OPEN_PORT\?$/m)
  assert.match(
    told,
    /^OTEL_EBPF_PROMETHEUS_PORT: svc does not serve request metrics for scraping; set otlp\.endpoint/m,
  )
  assert.match(told, /^BEYLA_BPF_CONTEXT_PROPAGATION: svc uses the context in requests but injects none/m)
  assert.match(told, /^OTEL_SERVICE_NAME: svc detects the name of each service/m)
  assert.match(told, /^OTEL_RESOURCE_ATTRIBUTES, service\.name: /m)
  assert.equal(leftOut.length, 5)
  assert.match(noted, /OTEL_EBPF_BPF_WAKEUP_LEN needs no conversion/)
  assert.match(noted, /HEADERS may contain a token/)
  assert.doesNotMatch(told + noted, /Bearer/)
})

test('the file becomes keys, and references stay references', () => {
  const { config, told, text, noted } = converted(
    `log_level: WARN
shutdown_timeout: 1m30s
otel_traces_export: {endpoint: "http://localhost:4318", sampler: {name: always_off}}
otel_metrics_export: {endpoint: "https://\${RECEIVER}/m", interval: 5s, histogram_aggregation: base2_exponential_bucket_histogram}
prometheus_export: {port: 8999, path: /metrics}
ebpf: {context_propagation: disabled, bpf_debug: true}
routes: {unmatched: wildcard, patterns: ["/a/:id", "/b/{id}"], ignored_patterns: [/health, "/x/*"], ignore_mode: traces}
internal_metrics: {prometheus: {port: 6060}}
attributes: {select: {http: {include: ["*"]}}, kubernetes: {enable: "false"}}
network: {enable: false, interfaces: [eth0, lo]}
nosuch: {a: 1}
ebpf_: 1
`,
    { RECEIVER: 'r:1' },
  )
  const { traces, metrics } = config.otlp
  assert.deepEqual([traces.endpoint, traces.protocol], ['http://localhost:4318/v1/traces', 'http/protobuf'])
  assert.deepEqual([metrics.endpoint, metrics.histograms], ['https://r:1/m', 'exponential'])
  assert.match(text, /https:\/\/\$\{RECEIVER\}\/m/)
  assert.match(noted, /uses variables that svc needs, too: RECEIVER/)
  const { routes, exclude_paths, sampling, flows, interfaces, metrics_interval } = config.agent.ebpf.network
  assert.deepEqual([routes.unmatched, routes.patterns], ['wildcard', ['/a/:id', '/b/{id}']])
  assert.deepEqual([exclude_paths, sampling.ratio, flows], [['/health', '/x/*'], 0, false])
  assert.deepEqual([interfaces, metrics_interval], [['eth0', 'lo'], 5000])
  assert.equal(config.agent.discovery.detect_kubernetes, false)
  assert.deepEqual([config.shutdown_timeout, config.self_telemetry.listen], [90_000, ':6060'])
  const paths = told.split('\n').map(line => line.split(':')[0])
  assert.deepEqual(paths.toSorted(), [
    'attributes.select',
    'ebpf_',
    'nosuch',
    'prometheus_export.path',
    'prometheus_export.port',
  ])
})

test('selectors become selectors that mean the same, or are left out as a whole', () => {
  const { config, told } = converted(`discovery:
  instrument:
  - {open_ports: [80, 8000-8999], k8s_namespace: "{a,b}", name: shop}
  - {exe_path: "/usr/**/x?"}
  - {languages: go}
  - {k8s_pod_labels: {app: "sh*"}, k8s_deployment_name: web}
  exclude_instrument:
  - {exe_path: "*/envoy"}
`)
  const { instrument, exclude } = config.discovery
  assert.deepEqual(
    instrument.map(({ open_ports, k8s_namespace, k8s_deployment_name, k8s_pod_labels }) => [
      open_ports.length,
      k8s_namespace,
      k8s_deployment_name,
      k8s_pod_labels,
    ]),
    [
      [2, 'a', '', {}],
      [2, 'b', '', {}],
      [0, '', 'web', { app: 'sh*' }],
    ],
  )
  assert.deepEqual(
    exclude.map(({ exe_path }) => exe_path),
    ['*/envoy'],
  )
  assert.match(told, /^discovery\.instrument\[0\]\.name: svc has no such setting for one service/m)
  assert.match(told, /^discovery\.instrument\[1\]\.exe_path: .*The whole entry is left out$/m)
  assert.match(told, /^discovery\.instrument\[2\]\.languages: svc cannot select by it/m)
})

test('expressions become texts with stars where they say no more', () => {
  const of = (regex: string) => {
    const { config } = converted(JSON.stringify({ executable_path: regex }))
    return config.discovery.instrument.map(({ exe_path }) => exe_path)
  }
  assert.deepEqual(of('shop'), ['*shop*'])
  assert.deepEqual(of('^/usr/bin/shop$'), ['/usr/bin/shop'])
  assert.deepEqual(of('^/opt/.*/a\\.out|nginx$'), ['/opt/*/a.out*', '*nginx'])
  for (const regex of ['a+', '(a|b)', 'a.c', '[ab]', '\\d']) assert.deepEqual(of(regex), [])
})

test('variables are found in compose files and manifests', () => {
  const compose = `services:\n  obi:\n    image: x\n    environment:\n      OTEL_EBPF_OPEN_PORT: 8080\n`
  const listed = `services:\n  obi:\n    environment:\n    - OTEL_EBPF_OPEN_PORT=8080\n    - HOME=/root\n`
  const manifest = `kind: DaemonSet\nspec: {template: {spec: {containers: [{name: obi, env: [{name: BEYLA_OPEN_PORT, value: "8080"}]}]}}}\n`
  for (const text of [compose, listed, manifest, 'export BEYLA_OPEN_PORT="8080"\n']) {
    const { config, leftOut } = converted(text)
    assert.deepEqual(leftOut, [])
    assert.deepEqual(config.discovery.instrument[0]!.open_ports, [port(8080)])
  }
})

test('what a file does not tell is named, and so is that all processes would be observed', () => {
  const { told } = converted(
    `containers: [{env: [{name: OTEL_EXPORTER_OTLP_HEADERS, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]`,
  )
  assert.match(told, /^OTEL_EXPORTER_OTLP_HEADERS: its value is not in the file/)
  const { told: left, noted } = converted(
    'otel_traces_export: {endpoint: "${TO}"}\ndiscovery: {instrument: [{languages: java}]}\n',
    { TO: 'http://collector:4318/v1/traces' },
  )
  assert.match(left, /^discovery\.instrument: no entry is left, and without entries svc observes every/m)
  assert.match(noted, /port 4317 needs otlp\.traces\.protocol: grpc/)
})

test('protocols that neither spans nor metrics are wanted of are switched off', () => {
  const { config, told } = converted(
    'OTEL_EBPF_TRACES_INSTRUMENTATIONS=http,mongo\nOTEL_EBPF_METRICS_INSTRUMENTATIONS=http,genai\n',
  )
  const { http, mongodb, redis, sql } = config.agent.ebpf.network as unknown as Record<string, boolean>
  assert.deepEqual([http, mongodb, redis, sql], [true, true, false, false])
  assert.match(told, /genai: svc does not decode this protocol/)
})

test('every setting of OBI is converted or has one reason, and none is there twice', () => {
  const paths = [...rows.map(({ path }) => path)]
  const names = [...rows.flatMap(({ variables }) => variables)]
  for (const { rows: written } of groups)
    for (const line of written.split('\n')) {
      const parts = line.trim().split(' ')
      assert.equal(parts.length, 2, line)
      if (parts[0] !== '-') paths.push(parts[0]!)
      if (parts[1] !== '-') names.push(parts[1]!.startsWith('OTEL_') ? parts[1]! : `OTEL_EBPF_${parts[1]}`)
    }
  for (const all of [paths, names]) assert.equal(new Set(all).size, all.length)
  const { variables } = knownSettings()
  assert.ok(variables.size > 150, String(variables.size))
  for (const name of `OPEN_PORT TARGET_PID TRACE_PRINTER ENFORCE_SYS_CAPS NETWORK_CIDRS HTTP_GRAPHQL_ENABLED NODEJS_ENABLED
    BPF_BUFFER_SIZE_HTTP KUBE_METADATA_ENABLE HOSTNAME INSTRUMENT_CUDA NAME_RESOLVER_SOURCES METRICS_TTL`.split(
    /\s+/,
  ))
    assert.ok(variables.has(`OTEL_EBPF_${name}`), name)
})

test('no value gets out of its place, whatever it is', () => {
  const nasty = fc.constantFrom(
    'a\nmode: collector',
    '# no',
    "'",
    '"',
    '${file:/etc/passwd}',
    '$${A}',
    '\u2028',
    '010',
    '{a,{b}}',
    '*',
  )
  const value = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 30 }), nasty)
  const name = fc.constantFrom(...[...knownSettings().paths].filter(path => path.includes('.')))
  fc.assert(
    fc.property(name, value, (path, text) => {
      const tree = path.split('.').reduceRight<unknown>((inner, part) => ({ [part]: inner }), text)
      const { config } = converted(JSON.stringify(tree), { A: '1' })
      assert.equal(config.mode, 'agent')
    }),
    { numRuns: soak ? 1000 : 40 },
  )
})
