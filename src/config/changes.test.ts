import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Branch, isBranch, leaves } from '../foundation/schema/tree.ts'
import {
  asWritten,
  changedKeys,
  contentFiles,
  formatProblems,
  keeping,
  type LoadedConfig,
  loadConfig,
  redacted,
  schema,
} from './index.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-changes-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

function load(yaml: string): LoadedConfig {
  writeFileSync(join(directory, 'config.yaml'), yaml)
  const loaded = loadConfig({ explicit: false, env: {}, cwd: directory, systemFile: '/nonexistent' })
  assert.equal(formatProblems(loaded.problems), '')
  return loaded
}

test('keys are sorted by when a new value takes effect', () => {
  const check = (before: string, after: string, want: Partial<ReturnType<typeof changedKeys>>) =>
    assert.deepEqual(changedKeys(load(before), load(after)), { live: [], restart: [], ignored: [], ...want })
  check('', '# a comment\nlog_level: info\n', {})
  check('log_level: warn', '', { live: ['log_level'] })
  check('', 'backoff: {max: 1m}\nlog_level: debug\nservice_name: x\nmode: agent\n', {
    restart: ['service_name'],
    live: ['log_level', 'backoff.max'],
  })
  check('otlp: {headers: {a: x, b: y}}', 'otlp: {headers: {b: y, a: x}}', {})
  check(
    'agent: {ebpf: {network: {include_ports: [1, 2]}}}',
    'agent: {ebpf: {network: {include_ports: [2, 1]}}}',
    {
      live: ['agent.ebpf.network.include_ports'],
    },
  )
  check('', 'agent: {gpu: {interval: 1m}, profiling: {sample_rate: 99}, ebpf: {network: {dns: false}}}', {
    live: ['agent.profiling.sample_rate', 'agent.gpu.interval'],
    restart: ['agent.ebpf.network.dns'],
  })
})

test('a value that this version lacks is not said to be in effect', () => {
  const changed = changedKeys(
    load(''),
    load('agent: {ebpf: {backend: kprobe, network: {capture_headers: [accept]}}}\n'),
  )
  assert.deepEqual(changed, {
    live: [],
    restart: ['agent.ebpf.backend'],
    ignored: ['agent.ebpf.network.capture_headers'],
  })
})

test('what is switched by a restart waits for it as a whole', () => {
  const on = load('self_telemetry: {debug: true, tls: {enabled: true, cert_file: c, key_file: k}}')
  const off = load('self_telemetry: {debug: false}')
  const { live, restart } = changedKeys(on, off)
  assert.deepEqual(live, ['self_telemetry.debug'])
  assert.deepEqual(restart, [
    'self_telemetry.tls.enabled',
    'self_telemetry.tls.cert_file',
    'self_telemetry.tls.key_file',
  ])
  const { tls, debug } = keeping(on, off, restart).config.self_telemetry
  assert.deepEqual([debug, tls.enabled, tls.cert_file], [false, true, 'c'])
})

test('what waits for a restart keeps value and origin, and differs again the next time', () => {
  const before = load('service_name: old\n')
  const after = load('\n\nlog_level: warn\nservice_name: new\n')
  const running = keeping(before, after, ['service_name'])
  assert.deepEqual([running.config.service_name, running.config.log_level], ['old', 'warn'])
  assert.equal(running.origins.get('service_name')?.line, 1)
  assert.equal(running.origins.get('log_level')?.line, 3)
  assert.deepEqual(changedKeys(running, after), { live: [], restart: ['service_name'], ignored: [] })
  assert.equal(keeping(before, load(''), ['service_name']).config.service_name, 'old')
  assert.equal(keeping(load(''), before, ['service_name']).origins.has('service_name'), false)
})

test('for people, one place of the file is one change', () => {
  const check = (beforeYaml: string, afterYaml: string, want: readonly string[]) => {
    const [before, after] = [load(beforeYaml), load(afterYaml)]
    const { live, restart } = changedKeys(before, after)
    assert.deepEqual(asWritten([...live, ...restart], before, after), want)
  }
  check('', 'otlp: {endpoint: "a:1"}', ['otlp.endpoint'])
  check('otlp: {endpoint: "a:1"}', '', ['otlp.endpoint'])
  check('otlp: {endpoint: "a:1"}', 'otlp: {endpoint: "http://a:1"}', ['otlp.endpoint'])
  check('otlp: {endpoint: "a:1"}', 'otlp: {endpoint: "b:1", traces: {endpoint: "c:1"}}', [
    'otlp.endpoint',
    'otlp.traces.endpoint',
  ])
  check('otlp: {endpoint: "a:1", traces: {endpoint: "b:1"}}', 'otlp: {endpoint: "a:1"}', [
    'otlp.traces.endpoint',
  ])
  check('', 'mode: collector', ['mode'])
  check('', 'pipeline: {operations: {shutdown: {timeout: 1m}}}', ['shutdown_timeout'])
})

test('the keys that need a restart, of those that do something', () => {
  const paths: string[] = []
  const walk = (root: Branch, path: string) => {
    for (const [name, node] of Object.entries(root.keys)) {
      if (node.built === false) continue
      if (isBranch(node)) walk(node, `${path}${name}.`)
      else if (node.restart) paths.push(`${path}${name}`)
    }
  }
  walk(schema, '')
  assert.deepEqual(paths, [
    'mode',
    'service_name',
    'instance_id',
    'limits.memory',
    'limits.cpu',
    'resource.attributes',
    'otlp.metrics.histograms',
    'agent.ebpf.enabled',
    'agent.ebpf.required',
    'agent.ebpf.backend',
    'agent.ebpf.ringbuf_size',
    'agent.ebpf.perf_buffer_size',
    'agent.ebpf.network.enabled',
    'agent.ebpf.network.http',
    'agent.ebpf.network.grpc',
    'agent.ebpf.network.dns',
    'agent.ebpf.network.sql',
    'agent.ebpf.network.redis',
    'agent.ebpf.network.memcached',
    'agent.ebpf.network.mongodb',
    'agent.ebpf.network.kafka',
    'agent.ebpf.network.amqp',
    'agent.ebpf.network.mqtt',
    'agent.ebpf.network.nats',
    'agent.ebpf.network.tls',
    'agent.ebpf.network.tcp_metrics',
    'agent.ebpf.network.flows',
    'agent.ebpf.network.interfaces',
    'agent.ebpf.network.capture_bytes',
    'agent.ebpf.syscalls.enabled',
    'agent.ebpf.syscalls.include',
    'agent.ebpf.syscalls.exclude',
    'agent.ebpf.process.enabled',
    'agent.logs.position_file',
    'agent.discovery.process_attributes',
    'agent.nodeexporter.enabled',
    'agent.nodeexporter.listen_address',
    'agent.nodeexporter.tls.enabled',
    'agent.nodeexporter.max_requests',
    'pipeline.export.queue.enabled',
    'pipeline.export.queue.directory',
    'self_telemetry.enabled',
    'self_telemetry.listen',
    'self_telemetry.path',
    'self_telemetry.prometheus_namespace',
    'self_telemetry.tls.enabled',
    'self_telemetry.admin_socket',
    'self_telemetry.ui.enabled',
    'self_telemetry.ui.window',
    'self_telemetry.ui.max_memory',
  ])
})

test('files whose content counts are named with the keys that name them', () => {
  const files = contentFiles(load('otlp: {tls: {ca_file: /ca.pem}, logs: {tls: {ca_file: /logs.pem}}}'))
  assert.deepEqual(
    [...files],
    [
      ['otlp.tls.ca_file', '/ca.pem'],
      ['otlp.traces.tls.ca_file', '/ca.pem'],
      ['otlp.metrics.tls.ca_file', '/ca.pem'],
      ['otlp.logs.tls.ca_file', '/logs.pem'],
      ['otlp.profiles.tls.ca_file', '/ca.pem'],
    ],
  )
})

/** Any values for a handful of keys of every class, as a file. */
const anyConfig = fc
  .record(
    {
      log_level: fc.constantFrom('debug', 'info', 'warn', 'error'),
      service_name: fc.constantFrom('a', 'b'),
      mode: fc.constantFrom('agent', 'collector'),
      otlp: fc.record(
        {
          endpoint: fc.constantFrom('a:1', 'http://b:2', 'https://c'),
          timeout: fc.integer({ min: 1, max: 9 }).map(seconds => `${seconds}s`),
          headers: fc.dictionary(fc.constantFrom('x', 'y', 'z'), fc.constantFrom('1', '2'), {
            noNullPrototype: true,
          }),
          compression: fc.constantFrom('gzip', 'none'),
        },
        { requiredKeys: [] },
      ),
      agent: fc.record(
        {
          ebpf: fc.record({ debug: fc.boolean(), enabled: fc.boolean() }, { requiredKeys: [] }),
          gpu: fc.record({ per_process: fc.boolean() }, { requiredKeys: [] }),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: [] },
  )
  .map(tree => JSON.stringify(tree))

test('no configuration differs from itself, and each difference is of one class', () => {
  fc.assert(
    fc.property(anyConfig, anyConfig, (a, b) => {
      const [before, after] = [load(a), load(b)]
      assert.deepEqual(changedKeys(before, load(a)), { live: [], restart: [], ignored: [] })
      const { live, restart, ignored } = changedKeys(before, after)
      const all = [...live, ...restart, ...ignored]
      assert.equal(new Set(all).size, all.length)
      const order = [...leaves(schema)].map(([path]) => path)
      for (const part of [live, restart, ignored])
        assert.deepEqual(
          part,
          part.toSorted((x, y) => order.indexOf(x) - order.indexOf(y)),
        )
      // Brought over, only what waits for a restart is left of it.
      const running = keeping(before, after, restart)
      assert.deepEqual(changedKeys(running, after), { live: [], restart, ignored: [] })
      if (all.length === 0) {
        assert.deepEqual(redacted(before.config, before.origins), redacted(after.config, after.origins))
      }
    }),
    { numRuns: 200 },
  )
})
