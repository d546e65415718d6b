// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in the file.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { formatProblems, type LoadOptions, loadConfig } from './index.ts'

const golden = join(import.meta.dirname, '../../test/golden/bad-config.txt')

interface Case {
  readonly what: string
  readonly file: string | Buffer
  readonly options?: Partial<LoadOptions>
}

/** Every kind of mistake. Each must refuse the start. */
const cases: readonly Case[] = [
  { what: 'an unknown top-level key', file: 'security:\n  enabled: true\n' },
  {
    what: 'a typo in a key, three levels down',
    file: 'agent:\n  ebpf:\n    network:\n      exclude_prots: [22]\n',
  },
  { what: 'a key one level too high', file: 'network: {http: false}\n' },
  {
    what: 'a typo in a key next to a secret',
    file: 'self_telemetry:\n  auth:\n    bearer_tokn: abc\n    enabled: true\n',
  },
  { what: 'a number as listen address', file: 'self_telemetry:\n  listen: 19090\n' },
  { what: 'an invalid port', file: 'self_telemetry: {listen: ":70000"}\n' },
  { what: 'a duration without a unit', file: 'otlp:\n  timeout: 10\n' },
  { what: 'a duration with an unknown unit', file: 'backoff: {max: 30 seconds}\n' },
  { what: 'a duration that is too short', file: 'agent: {discovery: {interval: 1ms}}\n' },
  { what: 'a Docker daemon over ssh', file: 'agent: {discovery: {docker: {endpoint: "ssh://far"}}}\n' },
  {
    what: 'a Docker daemon with a password',
    file: 'agent: {discovery: {docker: {endpoint: "tcp://me:secret@far:2376"}}}\n',
  },
  { what: 'an invalid size', file: 'queues: {traces: {mem_limit: lots}}\n' },
  {
    what: 'a ring buffer size that is not a power of two',
    file: 'agent:\n  ebpf:\n    ringbuf_size: 5000000\n',
  },
  { what: 'a number out of range', file: 'agent: {profiling: {sample_rate: 1000}}\n' },
  { what: 'a number in quotes', file: 'queues:\n  logs:\n    batch_size: "100"\n' },
  { what: 'a fraction instead of a whole number', file: 'otlp: {concurrency: 1.5}\n' },
  { what: 'a boolean in quotes', file: 'agent:\n  ebpf:\n    debug: "true"\n' },
  { what: 'a YAML 1.1 boolean', file: 'otlp: {insecure: yes}\n' },
  {
    what: 'an invalid choice',
    file: 'log_level: verbose\nmode: Agent\notlp: {protocol: http}\n',
  },
  { what: 'a number instead of text', file: 'service_name: 42\n' },
  { what: 'a key without a value', file: 'otlp:\n  endpoint:\n  insecure: true\n' },
  { what: 'a list instead of a map', file: 'resource:\n  attributes: [a, b]\n' },
  { what: 'a single value instead of a list', file: 'agent: {ebpf: {network: {exclude_ports: 22}}}\n' },
  {
    what: 'invalid list items',
    file: 'agent:\n  ebpf:\n    network:\n      include_ports: [80, http, 0, 443]\n',
  },
  { what: 'text instead of keys', file: 'otlp: collector:4317\n' },
  { what: 'a list at the top level', file: '- otlp\n- agent\n' },
  { what: 'text at the top level', file: 'just some words\n' },
  {
    what: 'an invalid endpoint',
    file: 'otlp:\n  endpoint: "ftp://collector"\n  traces: {endpoint: "a b:4317"}\n',
  },
  {
    what: 'an endpoint with an invalid port',
    file: 'otlp:\n  endpoint: "collector:0"\n  traces: {endpoint: "a:1,b:1"}\n  logs: {endpoint: "http://a?x=1"}\n',
  },
  {
    what: 'an endpoint with a password',
    file: 'otlp:\n  endpoint: "https://user:hunter2@collector:4317"\n',
  },
  { what: 'a path with gRPC', file: 'otlp:\n  endpoint: "http://collector:4318/v1/traces"\n' },
  { what: 'an invalid gRPC header value', file: 'otlp:\n  headers: {a: "é"}\n' },
  { what: 'a metrics path without a slash', file: 'self_telemetry:\n  path: metrics\n' },
  { what: 'a metrics path with a query', file: 'self_telemetry:\n  path: /metrics?all\n' },
  { what: 'a metrics path in use', file: 'self_telemetry: {path: /status}\n' },
  {
    what: 'redaction with a disabled pipeline',
    file: 'pipeline:\n  enabled: false\n  pii_redaction: true\n',
  },
  {
    what: 'invalid headers',
    file: 'otlp:\n  headers:\n    "bad name": x\n    grpc-timeout: 1S\n    ok: "a\\nb"\n',
  },
  {
    what: 'an invalid regular expression',
    file: 'agent: {nodeexporter: {netdev: {device_exclude: ["veth(" ]}}}\n',
  },
  { what: 'a repeated key', file: 'otlp:\n  insecure: true\n  endpoint: a:1\n  insecure: false\n' },
  { what: 'a tab for indentation', file: 'otlp:\n\tendpoint: a:1\n' },
  { what: 'broken YAML', file: 'otlp: {endpoint: "a:1"\nagent: [\n' },
  { what: 'a missing closing quote', file: 'service_name: "svc\n' },
  { what: 'two documents', file: 'mode: agent\n---\nmode: collector\n' },
  { what: 'an unknown alias', file: 'otlp: *common\n' },
  { what: 'a merge key', file: 'otlp: &o {insecure: true}\nagent:\n  <<: *o\n' },
  { what: 'a tag', file: 'service_name: !env NAME\n' },
  {
    what: 'aliases that expand too much',
    file: `resource: {attributes: {}}\ncollectors:\n  prometheus:\n    scrape_configs:\n      - &a0 [1,1,1,1,1,1,1,1,1,1]\n${Array.from(
      { length: 8 },
      (_, i) => `      - &a${i + 1} [${Array(10).fill(`*a${i}`).join(', ')}]\n`,
    ).join('')}`,
  },
  {
    what: 'invalid scrape configurations',
    file: `collectors:
  prometheus:
    scrape_interval: 15s
    scrape_configs:
      - job_name: node
        scrape_intervall: 5s
        static_configs:
          - targets: ["http://a:9100/metrics"]
      - job_name: node
        scrape_timeout: 10
        relabel_configs:
          - {source_labels: [a], target_label: b, regex: "(a"}
      - job_name: cloud
        gce_sd_configs: [{project: p}]
`,
  },
  {
    what: 'a scrape timeout longer than the interval',
    file: `collectors:
  prometheus:
    scrape_interval: 15s
    scrape_configs:
      - job_name: slow
        scrape_timeout: 20s
`,
  },
  {
    what: 'scrape configurations with the same name',
    file: 'collectors:\n  prometheus:\n    scrape_configs:\n      - job_name: a\n      - job_name: a\n',
  },
  {
    what: 'a password in the URL of a target list',
    file: 'collectors: {prometheus: {scrape_configs: [{job_name: a, http_sd_configs: [{url: "u:hunter2@a"}]}]}}\n',
  },
  { what: 'unlimited nesting', file: `agent: ${'['.repeat(20_000)}\n` },
  { what: 'invalid UTF-8', file: Buffer.from([0x6d, 0x6f, 0x64, 0x65, 0x3a, 0x20, 0xff, 0x0a]) },
  { what: 'a file over the size limit', file: Buffer.alloc(1024 * 1024 + 1, '#') },
  { what: 'a file with too many values', file: `agent: ${'['.repeat(300_000)}\n` },
  { what: 'a missing file', file: '', options: { path: 'absent.yaml', explicit: true } },
  { what: 'a directory', file: '', options: { path: '.', explicit: true } },
  {
    what: 'a missing file in SVC_CONFIG_FILE',
    file: '',
    options: { env: { SVC_CONFIG_FILE: 'gone.yaml' } },
  },
  { what: 'an unset variable', file: 'otlp:\n  endpoint: ${COLLECTOR}\n  concurrency: ${N}\n' },
  {
    what: 'an unset variable with a message',
    file: 'otlp: {endpoint: "${COLLECTOR:?set it to host:port}"}\n',
  },
  { what: 'an invalid reference', file: 'service_name: "a${1}"\ninstance_id: "${OPEN"\n' },
  {
    what: 'a missing certificate',
    file: 'otlp:\n  endpoint: https://collector:4317\n  tls: {ca_file: /nonexistent/ca.pem}\n',
    options: { checkFiles: true },
  },
  {
    what: 'a missing secret file',
    file: 'self_telemetry:\n  auth:\n    bearer_token: ${file:/nonexistent/token}\n',
  },
  {
    what: 'a variable with an invalid value',
    file: 'otlp:\n  concurrency: ${N}\n  headers: {a: x}\n',
    options: { env: { N: 'many' } },
  },
  {
    what: 'both spellings with different values',
    file: 'svc:\n  mode: agent\n  otlp: {}\nmode: collector\n',
  },
  {
    what: 'self_telemetry and selfTelemetry',
    file: 'self_telemetry: {debug: true}\nselfTelemetry: {debug: true}\n',
  },
  {
    what: 'two switches of the textfile collector',
    file: 'agent:\n  nodeexporter:\n    textfile: true\n    collectors: {textfile: false}\n',
  },
  { what: 'authentication without a token', file: 'self_telemetry:\n  auth: {enabled: true}\n' },
  {
    what: 'invalid tokens',
    file: 'self_telemetry:\n  auth: {enabled: true, bearer_token: "a b", bearer_tokens: ["", "é"]}\n',
  },
  {
    what: 'an exempt path that always needs a token',
    file: 'self_telemetry:\n  auth: {exempt: [/metrics, /debug/vars]}\n',
  },
  {
    what: 'a metrics path under /admin',
    file: 'self_telemetry: {path: /admin/metrics}\n',
  },
  {
    what: 'invalid origins',
    file: 'self_telemetry:\n  cors:\n    allowed_origins: [ops.example.com, "https://a.example/", "https://a.example:443", "null", "*"]\n',
  },
  { what: 'CORS without origins', file: 'self_telemetry: {cors: {enabled: true}}\n' },
  {
    what: 'a rate limit of 0',
    file: 'self_telemetry: {rate_limit: {enabled: true, requests_per_second: 0}, tracing: {sample_rate: 2}}\n',
  },
  {
    what: 'TLS of the management API without its key',
    file: 'self_telemetry:\n  tls: {enabled: true, cert_file: a.pem}\n',
  },
  {
    what: 'an invalid socket path',
    file: `self_telemetry: {admin_socket: svc.sock}\n`,
  },
  {
    what: 'a socket path that is too long',
    file: `self_telemetry: {admin_socket: /${'a'.repeat(107)}}\n`,
  },
  {
    what: 'TLS without its files',
    file: 'agent:\n  nodeexporter:\n    tls: {enabled: true, client_auth: true}\notlp: {tls: {cert_file: a.pem}}\n',
  },
  { what: 'two listeners on one port', file: 'self_telemetry: {listen: ":9100"}\n' },
  {
    what: 'contradicting durations',
    file: 'backoff: {initial: 1m, max: 30s}\ncollectors: {prometheus: {scrape_timeout: 2m}}\n',
  },
  {
    what: 'zstd without support in the runtime',
    file: 'otlp: {compression: zstd}\n',
    options: { runtime: { zstd: false } },
  },
  {
    what: 'contradicting rules',
    file: [
      'pipeline:',
      '  pii_redaction:',
      '    rules: [{name: a, type: regex}, {type: email}]',
      '  transform:',
      '    rules:',
      '      - name: r',
      '        actions: [{type: set_attribute, set_attribute: {key: a}}, {type: drop, replace: {key: b}}]',
      '',
    ].join('\n'),
  },
  {
    what: 'two redaction rules for one type',
    file: 'pipeline: {pii_redaction: {enabled: true, rules: [{name: a, type: ssn}, {name: b, type: ssn}]}}\n',
  },
  {
    what: 'an empty selector',
    file: 'discovery: {instrument: [{}, {open_ports: "9-8"}, {open_port: 80}]}\n',
  },
  {
    what: 'unknown and invalid variables',
    file: '',
    options: {
      env: {
        SVC_AGENT_EBPF_DEBUG: 'maybe',
        SVC_OTLP_ENDPONT: 'a:1',
        SVC_OTLP_HEADERS: 'secret',
        SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: '[80, ',
        SVC_LOG_LEVEL: '',
        SVC_WHATEVER_ELSE: '1',
      },
    },
  },
  { what: 'an invalid flag', file: '', options: { flags: { mode: 'both', log_level: 'trace' } } },
]

test('every kind of bad configuration is refused with a message that names the place and the hint', context => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-config-'))
  context.after(() => rmSync(directory, { recursive: true }))
  let text = ''
  for (const { what, file, options } of cases) {
    writeFileSync(join(directory, 'config.yaml'), file)
    const { problems } = loadConfig({
      explicit: false,
      env: {},
      cwd: directory,
      systemFile: '/nonexistent',
      ...options,
    })
    assert.ok(problems.length > 0, `accepted: ${what}`)
    text += `# ${what}\n${formatProblems(problems, { terminal: true })}\n`
  }
  if (process.env.UPDATE_GOLDEN) writeFileSync(golden, text)
  assert.equal(text, readFileSync(golden, 'utf8'))
  assert.ok(cases.length >= 30)
})
