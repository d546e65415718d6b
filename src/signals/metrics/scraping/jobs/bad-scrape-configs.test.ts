import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readScraping } from '../../../../../test/helpers/scrape-configs.ts'

const at = 'scrape_configs[0]'

/** An entry beside `job_name: j` in flow style, the key that is named, and what is said. */
const cases: readonly (readonly [entry: string, key: string, message: RegExp])[] = [
  ['foo: 1', 'foo', /^unknown key, not in Prometheus either$/],
  ['scrape_intervall: 5s', 'scrape_intervall', /did you mean "scrape_interval"\?/],
  ['metric_path: /m', 'metric_path', /did you mean "metrics_path"\?/],
  ['static_config: []', 'static_config', /did you mean "static_configs"\?/],
  [
    'consul_sd_configs: [{}]',
    'consul_sd_configs',
    /does not support this discovery; .*http_sd_configs.*file_sd_configs/,
  ],
  ['ec2_sd_configs: [{}]', 'ec2_sd_configs', /does not support this discovery/],
  ['dockerswarm_sd_configs: [{}]', 'dockerswarm_sd_configs', /does not support this discovery/],
  ['oauth2: {client_id: a}', 'oauth2', /OAuth 2\.0.*credentials_file/],
  ['scrape_interval: 30', 'scrape_interval', /the number 30; no unit; use 30s or 30ms/],
  [
    'scrape_interval: 1.5h',
    'scrape_interval',
    /expected a duration such as "30s" or "1h30m", found the text "1\.5h"/,
  ],
  ['scrape_interval: 1m1h', 'scrape_interval', /expected a duration/],
  ['scrape_interval: ""', 'scrape_interval', /expected a duration/],
  ['scrape_interval: 1ms', 'scrape_interval', /the minimum is 100ms/],
  ['scrape_interval: 1y', 'scrape_interval', /the maximum is 576h/],
  ['metrics_path: [a]', 'metrics_path', /expected text, found a list/],
  ['scheme: ftp', 'scheme', /expected http or https, found the text "ftp"/],
  ['params: {x: y}', 'params.x', /expected a list .*; write \[y\]/],
  ['params: [x]', 'params', /expected a map of names/],
  ['honor_labels: "true"', 'honor_labels', /use true without quotes/],
  ['honor_labels: 1', 'honor_labels', /expected true or false, found the number 1/],
  ['honor_timestamps: maybe', 'honor_timestamps', /expected true or false, found the text "maybe"/],
  ['sample_limit: -1', 'sample_limit', /expected a whole number, 0 or more/],
  ['sample_limit: "5"', 'sample_limit', /expected a whole number.*; write 5/],
  ['target_limit: 1.5', 'target_limit', /expected a whole number/],
  ['body_size_limit: 10M', 'body_size_limit', /units B, KB, MB or GB, in capitals/],
  ['body_size_limit: 10 MB', 'body_size_limit', /without a space/],
  ['body_size_limit: 100', 'body_size_limit', /units B, KB/],
  ['body_size_limit: 2GB', 'body_size_limit', /the maximum is 1GB/],
  ['scrape_protocols: [PrometheusText]', 'scrape_protocols[0]', /expected one of PrometheusProto, /],
  ['scrape_protocols: [PrometheusProto, PrometheusProto]', 'scrape_protocols', /duplicate entry/],
  ['basic_auth: {password: a, password_file: b}', 'basic_auth.password_file', /delete one/],
  ['basic_auth: {username_file: a}', 'basic_auth.username_file', /use username: "\$\{file:\/path\}"/],
  [
    'basic_auth: {user: a}',
    'basic_auth.user',
    /unknown key, not in Prometheus either; known keys: username, /,
  ],
  ['basic_auth: admin', 'basic_auth', /expected the keys of basic_auth .*secret value \(not shown\)/],
  ['basic_auth: {username: a}, bearer_token: b', 'bearer_token', /basic_auth and bearer_token are set/],
  [
    'basic_auth: {}, authorization: {credentials: b}',
    'authorization',
    /basic_auth and authorization are set/,
  ],
  ['authorization: {type: Basic}', 'authorization.type', /use basic_auth/],
  [
    'authorization: {credentials_ref: a}',
    'authorization.credentials_ref',
    /secret manager; use credentials_file/,
  ],
  ['bearer_token: a, bearer_token_file: b', 'bearer_token_file', /delete one/],
  ['tls_config: {cert_file: a}', 'tls_config.cert_file', /requires key_file/],
  ['tls_config: {ca: PEM}', 'tls_config.ca', /use ca_file/],
  ['tls_config: {min_version: 1.2}', 'tls_config.min_version', /expected one of TLS10, .*; use TLS12/],
  ['tls_config: {min_version: TLS13}', 'tls_config.min_version', /TLS 1\.2 and 1\.3/],
  [
    'tls_config: {insecure: true}',
    'tls_config.insecure',
    /unknown key, not in Prometheus either; known keys: ca, ca_file/,
  ],
  ['proxy_url: proxy:3128', 'proxy_url', /does not start with "http:\/\/" or "https:\/\/"/],
  ['proxy_url: "socks5://a:1"', 'proxy_url', /not SOCKS/],
  ['proxy_from_environment: true', 'proxy_from_environment', /use proxy_url/],
  ['no_proxy: a', 'no_proxy', /no effect without proxy_url/],
  [
    'http_headers: {Authorization: {values: [a]}}',
    'http_headers.Authorization',
    /basic_auth or authorization/,
  ],
  ['http_headers: {Host: {values: [a]}}', 'http_headers.Host', /svc sets this header itself/],
  ['http_headers: {X: {}}', 'http_headers.X', /the header has no value/],
  ['http_headers: {X: {files: [a]}}', 'http_headers.X.files', /\$\{file:\/path\}/],
  [
    'static_configs: [{targets: ["http://a:1"]}]',
    'static_configs[0].targets[0]',
    /a target is host:port; .*metrics_path/,
  ],
  ['static_configs: [{targets: [a, ""]}]', 'static_configs[0].targets[1]', /is empty; use host:port/],
  ['static_configs: [{targets: a}]', 'static_configs[0].targets', /expected a list .*write \[a\]/],
  ['static_configs: [{target: [a]}]', 'static_configs[0].target', /did you mean "targets"\?/],
  ['static_configs: {targets: [a]}', 'static_configs', /expected a list .*, found a map of keys/],
  ['static_configs: [~]', 'static_configs[0]', /expected a group of targets .*, found an empty entry/],
  ['static_configs: [{targets: [a], labels: [b]}]', 'static_configs[0].labels', /expected a map of names/],
  ['static_configs: [{labels: {"": a}}]', 'static_configs[0].labels.', /the label has no name/],
  ['file_sd_configs: [{}]', 'file_sd_configs[0].files', /is empty; add at least one file/],
  ['file_sd_configs: [{files: [a.txt]}]', 'file_sd_configs[0].files[0]', /\.json, \.yml or \.yaml/],
  [
    'file_sd_configs: [{files: ["*/a.json"]}]',
    'file_sd_configs[0].files[0]',
    /only in the last part of the path/,
  ],
  ['http_sd_configs: [{}]', 'http_sd_configs[0].url', /is missing/],
  ['http_sd_configs: [{url: "a:1"}]', 'http_sd_configs[0].url', /does not start with/],
  ['http_sd_configs: [{url: "http://"}]', 'http_sd_configs[0].url', /the host is missing/],
  ['dns_sd_configs: [{}]', 'dns_sd_configs[0].names', /add at least one/],
  ['dns_sd_configs: [{names: [a], type: A}]', 'dns_sd_configs[0].port', /records of type A have no port/],
  ['dns_sd_configs: [{names: [a], type: TXT}]', 'dns_sd_configs[0].type', /expected one of SRV, A/],
  ['docker_sd_configs: [{}]', 'docker_sd_configs[0].host', /unix:\/\/\/var\/run\/docker\.sock/],
  [
    'docker_sd_configs: [{host: "unix:///a", filters: [{name: b}]}]',
    'docker_sd_configs[0].filters',
    /action keep/,
  ],
  ['kubernetes_sd_configs: [{}]', 'kubernetes_sd_configs[0].role', /is missing; use one of pod/],
  ['kubernetes_sd_configs: [{role: pods}]', 'kubernetes_sd_configs[0].role', /expected one of pod, service/],
  [
    'kubernetes_sd_configs: [{role: pod, api_server: "https://a"}]',
    'kubernetes_sd_configs[0].api_server',
    /or of kubeconfig_file/,
  ],
  [
    'kubernetes_sd_configs: [{role: pod, bearer_token_file: a}]',
    'kubernetes_sd_configs[0].bearer_token_file',
    /or of kubeconfig_file/,
  ],
  [
    'kubernetes_sd_configs: [{role: pod, selectors: [{role: service, label: a}]}]',
    'kubernetes_sd_configs[0].selectors[0].role',
    /role pod has no selector for service/,
  ],
  [
    'kubernetes_sd_configs: [{role: pod, attach_metadata: {namespace: true}}]',
    'kubernetes_sd_configs[0].attach_metadata.namespace',
    /namespace labels/,
  ],
  ['relabel_configs: [{}]', 'relabel_configs[0].target_label', /requires a label name/],
  ['relabel_configs: [~]', 'relabel_configs[0]', /found an empty entry/],
  ['relabel_configs: [{action: kep, source_labels: [a]}]', 'relabel_configs[0].action', /use keep/],
  ['relabel_configs: [{target_label: a, regex: "("}]', 'relabel_configs[0].regex', /invalid expression/],
  ['relabel_configs: [{target_label: a, regex: "(?=a)"}]', 'relabel_configs[0].regex', /lookaround/],
  ['relabel_configs: [{action: hashmod, target_label: a}]', 'relabel_configs[0].modulus', /number above 0/],
  [
    'relabel_configs: [{target_label: a, source_label: [b]}]',
    'relabel_configs[0].source_label',
    /"source_labels"/,
  ],
  [
    'relabel_configs: [{target_label: a, source_labels: b}]',
    'relabel_configs[0].source_labels',
    /write \[b\]/,
  ],
  [
    'metric_relabel_configs: [{action: drop, modulus: x}]',
    'metric_relabel_configs[0].modulus',
    /whole number/,
  ],
  ['<<: 5', '<<', /unknown key/],
]

test('what is wrong is told with its key and the hint', () => {
  assert.ok(cases.length >= 60)
  for (const [entry, key, message] of cases) {
    const { problems } = readScraping(`scrape_configs: [{job_name: j, ${entry}}]`)
    assert.equal(problems.length, 1, `${entry}:\n${problems.join('\n')}`)
    const [problem] = problems as [string]
    assert.ok(problem.startsWith(`${at}.${key}: `), `${entry}: ${problem}`)
    assert.match(problem.slice(`${at}.${key}: `.length), message, entry)
  }
})

test('jobs that contradict each other are told', () => {
  const check = (text: string, ...want: RegExp[]) => {
    const { problems } = readScraping(text)
    assert.equal(problems.length, want.length, problems.join('\n'))
    for (const [i, problem] of problems.entries()) assert.match(problem, want[i]!)
  }
  check('scrape_configs: [{}]', /^scrape_configs\[0\]: job_name is missing/)
  check('scrape_configs: [{job_name: ""}]', /^scrape_configs\[0\]\.job_name: job_name is missing or empty/)
  check('scrape_configs: [~]', /^scrape_configs\[0\]: .*found an empty entry/)
  check('scrape_configs: {job_name: a}', /^scrape_configs: expected a list/)
  check(
    'scrape_configs: [{job_name: a}, {job_name: b}, {job_name: a}]',
    /^scrape_configs\[2\]\.job_name: duplicate job name "a", already used by scrape_configs\[0\]/,
  )
  check(
    'scrape_configs: [{job_name: a, scrape_timeout: 40s}]',
    /^collectors\.prometheus\.scrape_configs\[0\]\.scrape_timeout: is 40s, longer than the interval of 30s \(collectors\.prometheus\.scrape_interval\)/,
  )
  check(
    'scrape_configs: [{job_name: a, scrape_interval: 5s, scrape_timeout: 6s}]',
    /scrape_timeout: is 6s, longer than the interval of 5s;/,
  )
  check('scrape_configs: [{job_name: a, foo: 1, scheme: x}, {job_name: b, bar: 2}]', /foo/, /scheme/, /bar/)
})
