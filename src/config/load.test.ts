// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in the file.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { soak } from '../../test/helpers/soak.ts'
import { isBranch, leaves } from '../foundation/schema/tree.ts'
import { looseScalar } from '../foundation/schema/value.ts'
import {
  contentStates,
  defaults,
  formatProblems,
  jsonSchema,
  type LoadedConfig,
  type LoadOptions,
  loadConfig,
  noSuchFile,
  notBuiltFeatures,
  redacted,
  secretValues,
  shownKeys,
} from './index.ts'
import { schema } from './schema.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-load-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

function load(yaml: string | Buffer, options: Partial<LoadOptions> = {}): LoadedConfig {
  writeFileSync(join(directory, 'config.yaml'), yaml)
  return loadConfig({ explicit: false, env: {}, cwd: directory, systemFile: '/nonexistent', ...options })
}

/** Loads what must be good. */
function good(yaml: string, options: Partial<LoadOptions> = {}): LoadedConfig {
  const loaded = load(yaml, options)
  assert.equal(formatProblems(loaded.problems), '')
  return loaded
}

test('an empty file gives the defaults, and every default is valid', () => {
  assert.deepEqual(good('').config, defaults())
  assert.deepEqual(good('# nothing\n---\n').config, defaults())
  assert.deepEqual(good('otlp:\nagent: {ebpf: }\n').config, defaults())
  for (const [path, leaf] of leaves(schema)) {
    assert.match(leaf.description, /^[A-Z`].*\.$/s, path)
    assert.notEqual(leaf.default, undefined, path)
  }
})

test('the whole tree as it is shown can be written back into a file', () => {
  const shown = stringify(redacted(defaults(), new Map()))
  const empty = shown.replaceAll(/^ *(exclude|pattern)?.*: ""$\n/gm, '')
  const { config } = good(empty)
  assert.deepEqual(config, defaults())
})

test('values are typed: durations in milliseconds, sizes in bytes', () => {
  const { config } = good(`
otlp: {endpoint: "collector:4317", timeout: 1m30s, headers: {Authorization: Bearer x}}
agent: {ebpf: {ringbuf_size: 16Mi, network: {include_ports: [80, 443], routes: {patterns: ["/users/{id}"]}}}}
queues: {logs: {mem_limit: 500MB, max_age: 0}}
backoff: {jitter: 1}
discovery: {instrument: [{open_ports: 8080}, {open_ports: "8000-8999"}, {open_ports: "80,443", exe_path: "*/nginx"}]}
`)
  assert.equal(config.otlp.timeout, 90_000)
  assert.deepEqual(config.otlp.headers, { Authorization: 'Bearer x' })
  assert.equal(config.agent.ebpf.ringbuf_size, 16 * 1024 * 1024)
  assert.deepEqual(config.agent.ebpf.network.include_ports, [80, 443])
  assert.equal(config.queues.logs.mem_limit, 500_000_000)
  assert.equal(config.queues.logs.max_age, 0)
  assert.deepEqual(
    config.discovery.instrument.map(entry => entry.open_ports),
    [
      [{ from: 8080, to: 8080 }],
      [{ from: 8000, to: 8999 }],
      [
        { from: 80, to: 80 },
        { from: 443, to: 443 },
      ],
    ],
  )
})

test('other spellings mean the same', () => {
  const check = (yaml: string, read: (config: LoadedConfig['config']) => unknown, want: unknown) =>
    assert.equal(read(good(yaml).config), want, yaml)
  check('svc: {log_level: debug}', config => config.log_level, 'debug')
  check('svc: {log_level: debug}\nlog_level: debug', config => config.log_level, 'debug')
  check('selfTelemetry: {listen: ":1"}', config => config.self_telemetry.listen, ':1')
  check('selfTelemetry: false', config => config.self_telemetry.enabled, false)
  check('agent: {ebpf: false}', config => config.agent.ebpf.enabled, false)
  check('agent: {ebpf: {network: false}}', config => config.agent.ebpf.network.enabled, false)
  check(
    'agent: {nodeexporter: {collectors: {thermal: false}}}',
    config => config.agent.nodeexporter.collectors.thermal_zone,
    false,
  )
  check(
    'agent: {nodeexporter: {textfile: false}}',
    config => config.agent.nodeexporter.collectors.textfile,
    false,
  )
  check(
    'agent: {nodeexporter: {collectors: {textfile: false}}}',
    config => config.agent.nodeexporter.textfile.enabled,
    false,
  )
  check('otlp: &o {insecure: true}\npipeline: {export: {otlp: *o}}', config => config.otlp.insecure, true)
})

test('flags win over variables, variables over the file, the file over OTEL variables, those over defaults', () => {
  const otel = { OTEL_SERVICE_NAME: 'otel' }
  const env = { ...otel, SVC_SERVICE_NAME: 'variable' }
  const check = (yaml: string, options: Partial<LoadOptions>, want: string, source: string | undefined) => {
    const { config, origins } = good(yaml, options)
    assert.equal(config.service_name, want)
    assert.equal(origins.get('service_name')?.source, source)
  }
  check('', {}, 'svc', undefined)
  check('', { env: otel }, 'otel', 'otel')
  check('service_name: file', { env: otel }, 'file', 'file')
  check('service_name: file', { env }, 'variable', 'environment')
  check('service_name: file', { env, flags: { service_name: 'flag' } }, 'flag', 'flag')
})

test('an origin names the place', () => {
  const { origins, file } = good('otlp:\n  endpoint: a:1\n')
  assert.equal(file, 'config.yaml')
  const { source, name, line, column } = origins.get('otlp.endpoint')!
  assert.deepEqual(
    { source, name, line, column },
    { source: 'file', name: 'config.yaml', line: 2, column: 13 },
  )
})

test('of two keys that mean one thing the documented one wins', () => {
  const one = good('otlp: {endpoint: a:1}\npipeline: {export: {otlp: {endpoint: b:2}}}').config
  assert.equal(one.otlp.endpoint, 'b:2')
  assert.equal(one.otlp.traces.endpoint, 'b:2')
  const empty = good('otlp: {endpoint: a:1}\npipeline: {export: {otlp: {endpoint: ""}}}').config
  assert.equal(empty.otlp.endpoint, 'a:1')
  const stronger = good('pipeline: {export: {otlp: {endpoint: b:2}}}', {
    env: { SVC_OTLP_ENDPOINT: 'c:3' },
  }).config
  assert.equal(stronger.otlp.endpoint, 'c:3')
  const weaker = good('pipeline: {export: {otlp: {endpoint: b:2}}}', {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'c:3' },
  })
  assert.equal(weaker.config.otlp.endpoint, 'b:2')
  const shutdown = good('shutdown_timeout: 5s\npipeline: {operations: {shutdown: {timeout: 20s}}}').config
  assert.equal(shutdown.shutdown_timeout, 20_000)
  assert.equal(good('shutdown_timeout: 15s').config.pipeline.operations.shutdown.timeout, 15_000)
})

test('a signal takes what it does not set from the general keys', () => {
  const { otlp, queues } = good(`
otlp: {endpoint: a:1, timeout: 3s, headers: {a: x}, tls: {ca_file: /ca}, logs: {endpoint: b:2, headers: {b: y}}}
pipeline: {export: {batch: {size: 100}}}
queues: {logs: {batch_size: 7}}
`).config
  assert.equal(otlp.traces.endpoint, 'a:1')
  assert.equal(otlp.traces.timeout, 3000)
  assert.equal(otlp.traces.tls.ca_file, '/ca')
  assert.equal(otlp.logs.endpoint, 'b:2')
  assert.deepEqual(otlp.logs.headers, { b: 'y' })
  assert.deepEqual(
    [queues.traces.batch_size, queues.logs.batch_size, queues.profiles.batch_size],
    [100, 7, 100],
  )
  assert.equal(defaults().queues.profiles.batch_size, 64)
})

test('mode collector turns off what only an agent does', () => {
  const { config, notes } = good('mode: collector\nagent: {ebpf: {enabled: true}}')
  assert.equal(config.agent.ebpf.enabled, false)
  assert.equal(config.agent.nodeexporter.enabled, false)
  assert.deepEqual(notes, ['agent.ebpf.enabled is off in mode collector'])
  assert.equal(good('mode: collector\nagent: {nodeexporter: true}').config.agent.nodeexporter.enabled, true)
})

test('references are typed by the key, within values only', () => {
  const env = { PORTS: '80,443', N: '3', ON: 'true', KEY: 'otlp', TEXT: 'a: b' }
  const { config } = good(
    'otlp: {concurrency: "${N}", insecure: "${ON}"}\nservice_name: ${N}\ninstance_id: ${TEXT}\nagent: {ebpf: {network: {include_ports: "${PORTS}"}}}',
    { env },
  )
  assert.equal(config.otlp.concurrency, 3)
  assert.equal(config.otlp.insecure, true)
  assert.equal(config.service_name, '3')
  assert.equal(config.instance_id, 'a: b')
  assert.deepEqual(config.agent.ebpf.network.include_ports, [80, 443])
  assert.match(load('${KEY}: {}', { env }).problems[0]!.message, /unknown key/)
})

test('secrets are not shown: secret keys, secret files', () => {
  const secret = join(directory, 'secret')
  writeFileSync(secret, 'hunter2\n')
  const { config, origins } = good(`
otlp: {headers: {Authorization: Bearer hunter2}}
resource: {attributes: {plain: x, hidden: "a-\${file:${secret}}"}}
self_telemetry: {auth: {enabled: true, bearer_token: hunter2, bearer_tokens: [hunter2]}}
pipeline: {transform: {rules: [{name: r, actions: [{type: hash_attribute, hash_attribute: {key: k, salt: hunter2}}]}]}}
collectors:
  prometheus:
    targets: [{name: n, address: a, basic_auth: {username: u, password: hunter2}, headers: {X: hunter2}}]
    scrape_configs:
      - {job_name: j, basic_auth: {password: hunter2}, http_headers: {X: {values: [hunter2], secrets: [hunter2]}}}
      - {job_name: k, authorization: {credentials: hunter2}, params: {token: [hunter2], module: [x]}}
      - {job_name: l, bearer_token: hunter2, proxy_url: "http://u:hunter2@proxy:1"}
      - {job_name: m, http_sd_configs: [{url: "http://u:hunter2@a/", authorization: {credentials: hunter2}}]}
`)
  const shown = JSON.stringify(redacted(config, origins))
  assert.doesNotMatch(shown, /hunter2/)
  assert.doesNotMatch(JSON.stringify([...origins]), /hunter2/)
  assert.match(shown, /"Authorization":"\[REDACTED\]"/)
  assert.match(shown, /"plain":"x","hidden":"\[REDACTED\]"/)
  assert.match(shown, /"username":"u","password":"\[REDACTED\]"/)
  assert.match(shown, /"job_name":"j"/)
  assert.match(shown, /"params":\{"token":\["\[REDACTED\]"\],"module":\["x"\]\}/)
  assert.match(shown, /"proxy_url":"http:\/\/\[REDACTED\]@proxy:1"/)
  assert.ok(secretValues({ config, origins }).has('hunter2'))
  assert.equal(config.resource.attributes.hidden, 'a-hunter2')
})

test('a secret file is not shown either where its content is split or typed', () => {
  const check = (content: string, yaml: (reference: string) => string, want: unknown) => {
    const secret = join(directory, 'secret')
    writeFileSync(secret, content)
    const loaded = good(yaml(`"\${file:${secret}}"`))
    const keys = shownKeys(loaded).filter(({ origin }) => origin !== 'default')
    assert.deepEqual(
      keys.map(({ value }) => value),
      [want],
    )
    for (const text of [JSON.stringify(redacted(loaded.config, loaded.origins)), loaded.hash])
      assert.doesNotMatch(text, /hunter|1234/)
    return secretValues(loaded)
  }
  const attributes = (reference: string) => `resource: {attributes: ${reference}}`
  const hidden = { a: '[REDACTED]', b: '[REDACTED]' }
  assert.ok(check('a=hunter1,b=hunter2', attributes, hidden).has('hunter2'))
  assert.ok(check('{a: hunter1, b: "hunter\\x32"}', attributes, hidden).has('hunter2'))
  check('[hunter1, hunter2]', reference => `agent: {ebpf: {network: {interfaces: ${reference}}}}`, [
    '[REDACTED]',
    '[REDACTED]',
  ])
  check('+1234.0', reference => `agent: {ebpf: {network: {exclude_ports: [80, ${reference}]}}}`, [
    80,
    '[REDACTED]',
  ])
  check('1234000ms', reference => `backoff: {max_elapsed: ${reference}}`, '[REDACTED]')
  const targets = (reference: string) =>
    `collectors: {prometheus: {targets: [{name: n, address: "a:1", params: ${reference}}]}}`
  const [target] = shownKeys(good(targets('{x: a}'))).find(({ key }) => key.endsWith('.targets'))!
    .value as object[]
  check('x=hunter1', targets, [{ ...target, params: { x: '[REDACTED]' } }])
})

test('a message never repeats a secret', () => {
  const secret = join(directory, 'secret')
  writeFileSync(secret, 'hunter2\n')
  const check = (yaml: string) => {
    const { problems } = load(yaml)
    assert.notEqual(problems.length, 0, yaml)
    assert.doesNotMatch(formatProblems(problems, { terminal: true }), /hunter2/, yaml)
  }
  check('otlp: {endpoint: "https://user:hunter2@collector:4317"}')
  check('otlp: {endpoint: "user:hunter2@collector:4317", concurrency: x}')
  check('otlp: {traces: {endpoint: "https://hunter2@c"}, concurrency: x}')
  check(`otlp: {concurrency: "\${file:${secret}}"}`)
  check('otlp:\n  headers: hunter2')
  check('cloud: {aws: {endpoint: "ftp://u:hunter2@a"}}')
  check('collectors: {prometheus: {http_sd: [{url: "u:hunter2@a"}]}}')
  check('collectors: {prometheus: {targets: [{name: n, address: "http://u:hunter2@a"}]}}')
  check('collectors: {prometheus: {targets: [{name: n, address: "u:hunter2@a:80"}]}}')
  check('self_telemetry:\n  auth: {bearer_token: [hunter2]}')
  check('self_telemetry:\n  auth: {bearer_tokens: hunter2}')
  check('otlp:\n  Authorization: Bearer hunter2')
  check('agent:\n  ebpf:\n    password: "hunter2"')
  for (const job of [
    'basic_auth: {pwd: hunter2}',
    'basic_auth: {passwrod: hunter2}',
    'basic_auth: hunter2',
    'bearer_tokn: hunter2',
    'bearer_token: [hunter2]',
    'http_headers: {X: {valeus: [hunter2]}}',
    'http_headers: {X: hunter2}, foo: 1',
    'proxy_url: "ftp://u:hunter2@a"',
    'http_sd_configs: [{url: "u:hunter2@a", foo: 1}]',
    'oauth2: {client_secret: hunter2}',
  ]) {
    check(`collectors: {prometheus: {scrape_configs: [{job_name: j, ${job}}]}}`)
    const block = job.replaceAll(/: \{|, /g, found => (found === ', ' ? '\n        ' : ':\n          '))
    check(
      `collectors:\n  prometheus:\n    scrape_configs:\n      - job_name: j\n        ${block.replaceAll('}', '')}`,
    )
  }
  // Passwords without the quotes that YAML wants.
  for (const value of ['*hunter2', '!hunter2 x', '!<hunter2> x', '|hunter2', '"a" hunter2', '"${hunter2+}"'])
    check(`self_telemetry:\n  auth:\n    bearer_token: ${value}`)
  for (const content of ['{a: b}} hunter2', '[*hunter2]', '[!hunter2 a]', '[hunter2, hunter2']) {
    writeFileSync(secret, content)
    for (const key of ['resource: {attributes: ', 'otlp: {headers: ']) check(`${key}"\${file:${secret}}"}`)
  }
})

test('groups of relabelling rules are no references, and other texts of scrape configurations are', () => {
  const { config } = good(
    `
collectors:
  prometheus:
    metric_relabel_configs: [{target_label: "a_\${1}", replacement: "\${x}$1", regex: "(?P<x>a)(.*)"}]
    scrape_configs:
      - job_name: "\${NAME}"
        sample_limit: \${LIMIT}
        honor_labels: \${HONOR}
        relabel_configs: &rules
          - {target_label: job, source_labels: [a], regex: "(.*)", replacement: "\${1}"}
      - {job_name: b, relabel_configs: *rules, metric_relabel_configs: *rules}
      - {<<: {relabel_configs: [{target_label: job, replacement: "\${2}"}]}, job_name: c}
`,
    { env: { NAME: 'named', LIMIT: '7', HONOR: 'true', x: 'wrong' } },
  )
  const { scrape_configs: jobs, metric_relabel_configs: rules } = config.collectors.prometheus
  assert.deepEqual([rules[0]!.target_label, rules[0]!.replacement], ['a_${1}', '${x}$1'])
  assert.deepEqual([jobs[0]!.job_name, jobs[0]!.sample_limit, jobs[0]!.honor_labels], ['named', 7, true])
  assert.deepEqual(
    jobs.map(job => job.relabel_configs![0]!.replacement),
    ['${1}', '${1}', '${2}'],
  )
})

test('the examples of the page about scraping are valid', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/scraping.md'), 'utf8')
  const examples = [...text.matchAll(/^```yaml\n(.*?)^```/gms)]
  assert.notEqual(examples.length, 0)
  for (const [, example] of examples) assert.deepEqual(good(example!).warnings, [])
})

test('what a scrape configuration asks for and does not get is a warning', () => {
  const { warnings } = good(
    'collectors: {prometheus: {scrape_configs: [{job_name: a, scrape_native_histograms: true}]}}',
  )
  assert.deepEqual(warnings, [
    'collectors.prometheus.scrape_configs[0].scrape_native_histograms has no effect: svc supports only histograms with classic buckets',
  ])
})

test('what is not shown in the file is shown as text that a file takes', () => {
  const { config, origins } = good('queues: {traces: {mem_limit: 1536Ki}}\nbackoff: {max: 90s}')
  const shown = redacted(config, origins) as Record<string, Record<string, unknown>>
  assert.equal((shown.queues!.traces as Record<string, unknown>).mem_limit, '1536Ki')
  assert.equal(shown.backoff!.max, '1m30s')
  assert.equal((shown.agent!.ebpf as Record<string, unknown>).ringbuf_size, 8_388_608)
})

test('the file is looked for where the documentation says', () => {
  const place = mkdtempSync(join(directory, 'find-'))
  const last = join(place, 'etc.yaml')
  const find = (options: Partial<LoadOptions>) =>
    loadConfig({ explicit: false, env: {}, cwd: join(place, 'cwd'), systemFile: last, ...options })
  mkdirSync(join(place, 'cwd'))
  assert.equal(find({}).file, null)
  writeFileSync(last, 'service_name: etc')
  assert.equal(find({}).config.service_name, 'etc')
  writeFileSync(join(place, 'cwd/config.yaml'), 'service_name: cwd')
  assert.equal(find({}).config.service_name, 'cwd')
  writeFileSync(join(place, 'named.yaml'), 'service_name: named')
  const env = { SVC_CONFIG_FILE: join(place, 'named.yaml') }
  assert.equal(find({ env }).config.service_name, 'named')
  writeFileSync(join(place, 'cwd/flag.yaml'), 'service_name: flag')
  assert.equal(find({ env, path: 'flag.yaml', explicit: true }).config.service_name, 'flag')
  assert.equal(find({ path: 'gone.yaml', explicit: true }).problems.length, 1)
  assert.equal(find({ path: 'gone.yaml', explicit: false }).problems.length, 0)
})

test('what is on but not built is named, with who asked for it', () => {
  const keys = (yaml: string) => {
    const { config, origins } = good(yaml)
    return new Map(notBuiltFeatures(config, origins).map(({ key, explicit }) => [key, explicit]))
  }
  const plain = keys('')
  assert.equal(plain.size, 0)
  assert.equal(plain.has('agent.logs'), false)
  assert.equal(plain.has('agent.profiling'), false)
  assert.equal(plain.has('agent.ebpf.network.http'), false)
  assert.equal(plain.has('pipeline.pii_redaction'), false)
  assert.equal(plain.has('otlp'), false)
  const captured = 'agent.ebpf.network.capture_headers'
  assert.equal(keys('agent: {ebpf: {network: {capture_headers: [accept]}}}').get(captured), true)
  assert.equal(keys('agent: {ebpf: {network: {capture_headers: []}}}').has(captured), false)
  assert.equal(keys('agent: {ebpf: {backend: kprobe}}').get('agent.ebpf.backend: kprobe'), true)
  assert.equal(
    keys('agent: {ebpf: {network: {capture_headers: [accept]}}}').get('agent.ebpf.network.capture_headers'),
    true,
  )
  assert.equal(keys('discovery: {exclude: [{name: x}]}').has('discovery'), false)
})

test('a file that a pipe gives is read', () => {
  const script = `import { loadConfig } from ${JSON.stringify(join(import.meta.dirname, 'index.ts'))}
const { config, once } = loadConfig({ path: '/dev/stdin', explicit: true, env: {} })
console.log(config.service_name, once)`
  const out = execFileSync(
    'sh',
    ['-c', 'echo "service_name: piped" | "$0" --input-type=module -e "$1"', process.execPath, script],
    {
      encoding: 'utf8',
    },
  )
  assert.equal(out.trim(), 'piped true')
})

test('the JSON Schema has every key, each with description and default', () => {
  const check = (root: typeof schema | object, json: Record<string, unknown>, path: string): void => {
    const object = 'anyOf' in json ? ((json.anyOf as object[]).at(-1) as Record<string, unknown>) : json
    assert.equal(object.additionalProperties, false, path)
    const properties = object.properties as Record<string, Record<string, unknown>>
    for (const [name, node] of Object.entries((root as typeof schema).keys)) {
      const here = `${path}.${name}`
      assert.ok(properties[name]?.description, here)
      if (isBranch(node)) check(node, properties[name]!, here)
      else assert.ok('default' in properties[name]!, here)
    }
  }
  const json = jsonSchema() as Record<string, unknown>
  check(schema, json, '')
  assert.ok('svc' in (json.properties as object) && 'selfTelemetry' in (json.properties as object))
})

test('the reference pages are those of the schema', () => {
  const tool = join(import.meta.dirname, '../../tools/gen-docs.ts')
  execFileSync(process.execPath, [tool, '--check'], { stdio: 'inherit' })
})

/** Something like the tree, with any values in it. */
const names = [...new Set([...leaves(schema)].flatMap(([path]) => path.split('.')))]
const anyYaml = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'small' },
    fc.oneof(
      fc.boolean(),
      fc.integer(),
      fc.double(),
      fc.constant(null),
      fc.string(),
      fc.constantFrom('${X}', '$${', '1h', '1Mi', '['),
    ),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), tie('value'), { maxKeys: 6 }),
  ),
})).value

test('no file whatever makes the loader throw', () => {
  const check = (text: string | Buffer) => {
    const { problems, config } = load(text, { env: { X: '7' } })
    formatProblems(problems, { terminal: true, color: true })
    assert.equal(typeof config.log_level, 'string')
  }
  fc.assert(
    fc.property(anyYaml, value => check(stringify(value))),
    { numRuns: 300 },
  )
  fc.assert(fc.property(fc.string({ unit: 'binary' }), check), { numRuns: 200 })
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), bytes => check(Buffer.from(bytes))),
    { numRuns: 200 },
  )
  const tokens = fc.constantFrom(
    'otlp',
    ': ',
    '\n',
    '  ',
    '- ',
    '[',
    ']',
    '{',
    '}',
    '&a ',
    '*a',
    '"',
    "'",
    '#',
    '|',
    '!t ',
    '${',
    '<<',
    ',',
  )
  fc.assert(
    fc.property(fc.array(tokens, { maxLength: 40 }), parts => check(parts.join(''))),
    { numRuns: 500 },
  )
})

test('every kind takes any value without throwing', () => {
  fc.assert(
    fc.property(fc.constantFrom(...leaves(schema)), fc.string(), ([path, leaf], text) => {
      leaf.kind.read(looseScalar('X', text), path, { secret: false, problem: () => {} })
    }),
    { numRuns: 2000 },
  )
})

test('a large foreign file is refused with a bounded number of messages', () => {
  const large = soak ? 60_000 : 10_000
  for (const unit of ['a: 1\n', '[', '- ', '{', '&a ', '*a ', '"', 'token: ', '? ', '!!x ']) {
    const { problems } = load(unit.repeat(Math.floor(large / unit.length)))
    assert.ok(problems.length > 0 && problems.length <= 100, unit)
  }
  const many = Array.from({ length: large }, (_, i) => `k${i}: 1\n`).join('')
  assert.equal(load(many).problems.length, 100)
})

test('a feature that is not built is told as asked for only where it was set', () => {
  const keys = (yaml: string) => {
    const { config, origins } = good(yaml)
    return notBuiltFeatures(config, origins)
      .filter(({ explicit }) => explicit)
      .map(({ key }) => key)
  }
  assert.deepEqual(keys(''), [])
  assert.deepEqual(keys('service_name: mine\nself_telemetry: {cors: {}, ui: false}\n'), [])
  assert.deepEqual(keys('agent: {gpu: {enabled: true}, ebpf: {network: {capture_headers: [accept]}}}\n'), [
    'agent.ebpf.network.capture_headers',
  ])
})

test('every file that takes part is named with its state, whether it could be read or not', async () => {
  const [token, gone] = [join(directory, 'token'), join(directory, 'gone')]
  writeFileSync(token, 'hunter2\n')
  const yaml = `self_telemetry: {auth: {bearer_token: "\${file:${token}}"}}\nresource: {attributes: {a: "\${file:${gone}}"}}`
  const { files, filePath, file, once } = load(yaml)
  const path = join(directory, 'config.yaml')
  assert.deepEqual([file, filePath, once], ['config.yaml', path, false])
  assert.deepEqual([...files.keys()], [path, token, gone])
  assert.deepEqual(files, await contentStates(files.keys()))
  const absent = loadConfig({ path: join(directory, 'no.yaml'), explicit: true, env: {} })
  assert.deepEqual([...absent.files], [[join(directory, 'no.yaml'), noSuchFile]])
  assert.deepEqual(load('', { cwd: '/nonexistent' }).files, new Map())
})

test('the hash is that of the settings, and a secret has no part in it', () => {
  const token = join(directory, 'token')
  writeFileSync(token, 'hunter2\n')
  const yaml = (host: string, header = 'x') => `# settings of ${header}
otlp: {endpoint: "${host}:1", headers: {Authorization: ${header}}}
resource: {attributes: {hidden: "a-\${file:${token}}", plain: "\${P:-p}"}}
`
  const { hash } = good(yaml('a'))
  assert.match(hash, /^[0-9a-f]{16}$/)
  assert.equal(good(yaml('a')).hash, hash)
  assert.equal(good(`${yaml('a')}log_level: info # the default, written out\n`).hash === hash, false)
  assert.notEqual(good(yaml('b')).hash, hash)
  assert.notEqual(good(yaml('a'), { env: { P: 'q' } }).hash, hash)
  assert.notEqual(good(yaml('a'), { env: { SVC_LOG_LEVEL: 'warn' } }).hash, hash)
  assert.notEqual(good(yaml('a'), { flags: { mode: 'collector' } }).hash, hash)
  // Else who can read the hash could try secrets until it fits.
  writeFileSync(token, 'hunter3\n')
  assert.equal(good(yaml('a', 'y')).hash, hash)
})
