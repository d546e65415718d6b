import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Certificates, makeCertificates } from '../../test/helpers/certificates.ts'
import { loadConfig } from './index.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-check-files-'))
let certificates: Certificates
before(() => {
  certificates = makeCertificates()
})
after(() => {
  certificates.remove()
  rmSync(directory, { recursive: true })
})

function load(text: string, more: { checkFiles?: boolean; env?: Record<string, string> } = {}) {
  const path = join(directory, 'svc.yaml')
  writeFileSync(path, text)
  return loadConfig({ path, explicit: true, env: {}, checkFiles: true, ...more })
}

/** `LINE:COLUMN: key: message` of each. */
function told(text: string, more?: Parameters<typeof load>[1]): string[] {
  return load(text, more).problems.map(
    ({ where, line, column, key, message }) =>
      `${line > 0 ? `${line}:${column}` : where}: ${key}: ${message}`,
  )
}

test('a file that is not there, or is not what its key is for, is told at its place', () => {
  const junk = join(directory, 'junk.pem')
  writeFileSync(junk, 'no PEM\n')
  const check = (text: string, ...want: RegExp[]) => {
    const found = told(text)
    assert.equal(found.length, want.length, found.join('\n'))
    for (const [i, line] of found.entries()) assert.match(line, want[i]!)
  }
  const file = (name: string) => certificates.file(name)
  check(
    'otlp:\n  tls:\n    ca_file: /no/ca.pem\n',
    /^3:14: otlp\.tls\.ca_file: cannot use \/no\/ca\.pem: there is no such/,
  )
  check(
    `otlp: {logs: {tls: {ca_file: ${directory}}}}\n`,
    /^1:30: otlp\.logs\.tls\.ca_file: .*not a regular file/,
  )
  check(`otlp: {tls: {ca_file: ${junk}}}\n`, /it contains no PEM certificate$/)
  check(
    `otlp: {tls: {cert_file: ${junk}, key_file: ${junk}}}\n`,
    /^1:\d+: otlp\.tls\.cert_file: .*no PEM certificate/,
    /^1:\d+: otlp\.tls\.key_file: .*no readable PEM private key/,
  )
  check(`otlp: {tls: {cert_file: ${file('client.pem')}, key_file: ${file('client.key')}}}\n`)
  check(
    `otlp: {tls: {cert_file: ${file('client.pem')}, key_file: ${file('server.key')}}}\n`,
    /^1:\d+: otlp\.tls\.key_file: .*it does not match the certificate in cert_file/,
  )
  check(
    `selfTelemetry:\n  tls: {enabled: true, cert_file: ${file('old.pem')}, key_file: ${file('old.key')}}\n`,
    /^2:35: selfTelemetry\.tls\.cert_file: .*the certificate expired on/,
  )
  check(
    `agent: {nodeexporter: {tls: {enabled: true, cert_file: ${file('server.pem')}, key_file: ${file('server.key')}, client_ca_file: ${file('server.key')}}}}\n`,
    /nodeexporter\.tls\.client_ca_file: .*no PEM certificate/,
  )
  check('agent: {discovery: {kubernetes: {kubeconfig: /no/config}}}\n', /kubeconfig: .*there is no such file/)
  check(
    'collectors:\n  prometheus:\n    targets:\n      - {name: a, address: "a:1", tls: {ca_file: /no/ca}}\n',
    /^4:50: collectors\.prometheus\.targets\[0\]\.tls\.ca_file: /,
  )
  // What is switched off reads nothing.
  check('self_telemetry: {tls: {enabled: false, cert_file: /no/cert, key_file: /no/key}}\n')
  check(
    'collectors: {prometheus: {enabled: false, targets: [{name: a, address: "a:1", tls: {ca_file: /no/ca}}]}}\n',
  )
})

test('files of scrape configurations are looked for beside the configuration', () => {
  writeFileSync(join(directory, 'token'), 'abc')
  const text = (name: string) =>
    `collectors:\n  prometheus:\n    scrape_configs:\n      - job_name: a\n        authorization: {credentials_file: ${name}}\n        static_configs: [{targets: ["a:1"]}]\n`
  assert.deepEqual(told(text('token')), [])
  const [found, ...others] = told(text('gone'))
  assert.deepEqual(others, [])
  assert.match(
    found!,
    /^5:43: collectors\.prometheus\.scrape_configs\[0\]\.authorization\.credentials_file: cannot use gone/,
  )
})

test('variables that name a file are looked at, and stand in for what the file says', () => {
  const text = 'otlp: {tls: {ca_file: /no/a}}\n'
  assert.deepEqual(told(text, { env: { SVC_OTLP_TLS_CA_FILE: certificates.file('ca.pem') } }), [])
  const spelled = 'selfTelemetry: {tls: {enabled: true, cert_file: /no/c, key_file: /no/k}}\n'
  const env = {
    SVC_SELF_TELEMETRY_TLS_CERT_FILE: certificates.file('server.pem'),
    SVC_SELF_TELEMETRY_TLS_KEY_FILE: certificates.file('server.key'),
  }
  assert.deepEqual(told(spelled, { env }), [])
  assert.deepEqual(told('', { env: { OTEL_EXPORTER_OTLP_CERTIFICATE: '/no/b' } }), [
    'OTEL_EXPORTER_OTLP_CERTIFICATE: otlp.tls.ca_file: cannot use /no/b: there is no such file',
  ])
  assert.deepEqual(told(text, { checkFiles: false }), [])
})

test('a receiver whose very certificate is trusted must have a name of it', () => {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' })
  const subject = [
    '-subj',
    '/CN=a',
    '-addext',
    'subjectAltName=DNS:collector',
    '-addext',
    'basicConstraints=CA:FALSE',
  ]
  openssl(
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    '-keyout',
    'own.key',
    '-out',
    'own.pem',
    ...subject,
  )
  const check = (endpoint: string, more: string, want: RegExp | undefined) => {
    const found = told(
      `otlp: {endpoint: "${endpoint}", tls: {ca_file: ${join(directory, 'own.pem')}${more}}}\n`,
    )
    assert.equal(found.length, want === undefined ? 0 : 1, found.join('\n'))
    if (want) assert.match(found[0]!, want)
  }
  check('https://collector:4317', '', undefined)
  check(
    'https://10.0.0.1:4317',
    '',
    /ca_file: .*valid for DNS:collector, not for "10\.0\.0\.1"; set server_name/,
  )
  check('https://10.0.0.1:4317', ', server_name: collector', undefined)
  check('https://collector:4317', ', server_name: other', /not for "other"/)
  check('https://other:4317', ', insecure_skip_verify: true', undefined)
  // An authority may sign for any name.
  const authority = `otlp: {endpoint: "https://other:4317", tls: {ca_file: ${certificates.file('ca.pem')}}}\n`
  assert.deepEqual(told(authority), [])
})

test('what this user may not read is a warning: the agent may be another', {
  skip: process.getuid?.() !== 0,
}, () => {
  const secret = join(directory, 'secret.key')
  writeFileSync(secret, '')
  chmodSync(secret, 0o600)
  chmodSync(directory, 0o755)
  const path = join(directory, 'denied.yaml')
  writeFileSync(path, `otlp: {tls: {ca_file: ${secret}}}\n`)
  process.seteuid!(65_534)
  try {
    const { problems, warnings } = loadConfig({ path, explicit: true, env: {}, checkFiles: true })
    assert.deepEqual(problems, [])
    assert.equal(warnings.length, 1)
    assert.match(warnings[0]!, /denied\.yaml:1:23: otlp\.tls\.ca_file: cannot check \S+ as this user: /)
  } finally {
    process.seteuid!(0)
  }
})
