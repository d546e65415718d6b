import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boolean, count } from '../foundation/schema/kinds.ts'
import { type Problem, reportInto } from '../foundation/schema/problem.ts'
import { branch, key, leaves } from '../foundation/schema/tree.ts'
import { readEnvironment, variableOf } from './environment.ts'
import { type LoadedConfig, loadConfig } from './index.ts'
import { schema } from './schema.ts'

function load(env: Record<string, string>): LoadedConfig {
  return loadConfig({ explicit: false, env, cwd: '/nonexistent', systemFile: '/nonexistent/config.yaml' })
}

/** The value at a path. */
function at(config: unknown, path: string): unknown {
  return path.split('.').reduce((node, name) => (node as Record<string, unknown>)[name], config)
}

test('a variable sets the key of its name, whatever its type', () => {
  const check = (name: string, text: string, path: string, want: unknown) => {
    const { config, problems, origins } = load({ [name]: text })
    assert.deepEqual(problems, [], name)
    assert.deepEqual(at(config, path), want, name)
    assert.equal(origins.get(path)?.name, name)
    assert.equal(origins.get(path)?.source, 'environment')
  }
  check('SVC_LOG_LEVEL', 'debug', 'log_level', 'debug')
  check('SVC_SVC_LOG_LEVEL', 'debug', 'log_level', 'debug')
  check('SVC_AGENT_EBPF_DEBUG', 'true', 'agent.ebpf.debug', true)
  check('SVC_AGENT_EBPF', 'false', 'agent.ebpf.enabled', false)
  check('SVC_SERVICE_NAME', '42', 'service_name', '42')
  check('SVC_SELF_TELEMETRY_LISTEN', ':1', 'self_telemetry.listen', ':1')
  check('SVC_SELF_TELEMETRY_AUTH_BEARER_TOKEN', '123', 'self_telemetry.auth.bearer_token', '123')
  check('SVC_AGENT_EBPF_RINGBUF_SIZE', '4Mi', 'agent.ebpf.ringbuf_size', 4_194_304)
  check('SVC_BACKOFF_MAX', '1m', 'backoff.max', 60_000)
  check('SVC_BACKOFF_JITTER', '0.5', 'backoff.jitter', 0.5)
  check('SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS', '80, 443', 'agent.ebpf.network.include_ports', [80, 443])
  check('SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS', '[80, 443]', 'agent.ebpf.network.include_ports', [80, 443])
  check('SVC_AGENT_EBPF_NETWORK_EXCLUDE_PATHS', '', 'agent.ebpf.network.exclude_paths', [])
  check('SVC_OTLP_HEADERS', 'a=b,c=d=e', 'otlp.headers', { a: 'b', c: 'd=e' })
  check('SVC_OTLP_HEADERS', '{a: b, c: 1}', 'otlp.headers', { a: 'b', c: '1' })
  check('SVC_OTLP_ENDPOINT', '', 'otlp.endpoint', '')
  check('SVC_AGENT_NODEEXPORTER_COLLECTORS_WIFI', 'true', 'agent.nodeexporter.collectors.wifi', true)
  check('SVC_DISCOVERY_INSTRUMENT', '[{open_ports: 8080}]', 'discovery.instrument', [
    {
      open_ports: [{ from: 8080, to: 8080 }],
      exe_path: '',
      name: '',
      k8s_namespace: '',
      k8s_pod_name: '',
      k8s_deployment_name: '',
      k8s_daemonset_name: '',
      k8s_statefulset_name: '',
      k8s_container_name: '',
      k8s_pod_labels: {},
    },
  ])
})

test('every key has a variable of its own', () => {
  const names = [...leaves(schema)].map(([path]) => variableOf(path))
  assert.equal(new Set(names).size, names.length)
})

test('every scalar default can be given as a variable', () => {
  for (const [path, leaf] of leaves(schema)) {
    const shown = leaf.kind.show(leaf.default, value => value)
    if (typeof shown === 'object') continue
    const { config, problems } = load({ [variableOf(path)]: String(shown) })
    if (shown === '' && problems.length > 0) continue
    assert.deepEqual(problems, [], path)
    assert.deepEqual(at(config, path), leaf.default, path)
  }
})

test('unknown variables are errors that name the nearest', () => {
  const check = (name: string, want: RegExp) => {
    const { problems } = load({ [name]: 'x' })
    assert.equal(problems.length, 1, name)
    assert.equal(problems[0]!.where, name)
    assert.match(problems[0]!.message, want)
  }
  check('SVC_LOG_LEVL', /did you mean SVC_LOG_LEVEL\?/)
  check('SVC_OTLP_ENDPOINTS', /did you mean SVC_OTLP_ENDPOINT\?/)
  check('SVC_NOTHING_LIKE_IT', /no key/)
  check('SVC_', /unknown variable/)
})

test('variables of the process and of Kubernetes services are left alone', () => {
  const check = (name: string, noted: boolean) => {
    const { problems, notes } = load({ [name]: 'tcp://10.0.0.1:80' })
    assert.deepEqual(problems, [], name)
    assert.equal(notes.length, noted ? 1 : 0, name)
  }
  check('SVC_TOKEN', false)
  for (const name of ['SVC_SERVICE_HOST', 'SVC_SERVICE_PORT_HTTP', 'SVC_PORT', 'SVC_PORT_80_TCP_ADDR'])
    check(name, true)
  for (const name of ['SVC_AGENT_SERVICE_HOST', 'SVC_AGENT_PORT', 'SVC_AGENT_PORT_9100_TCP'])
    check(name, true)
})

test('a name that two keys share is an error where it is used', () => {
  const tree = branch('', {
    a: branch('', { b_c: key(count, 0, 'One.') }),
    a_b: branch('', { c: key(count, 0, 'Other.'), enabled: key(boolean, true, 'Switch.') }),
  })
  const problems: Problem[] = []
  const settings = readEnvironment(tree, { SVC_A_B_C: '1', SVC_A_B: 'false' }, reportInto(problems), [])
  assert.equal(problems.length, 1)
  assert.match(problems[0]!.message, /ambiguous: it can mean a\.b_c and a_b\.c/)
  assert.equal(settings.get('a_b.enabled')?.value, false)
})

test('two variables for one key may not differ', () => {
  assert.equal(load({ SVC_MODE: 'agent', SVC_SVC_MODE: 'agent' }).problems.length, 0)
  assert.equal(load({ SVC_MODE: 'agent', SVC_SVC_MODE: 'collector' }).problems.length, 1)
})
