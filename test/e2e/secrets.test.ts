// owns: ports
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { AgentProcess, type Tree } from '../helpers/agent-process.ts'
import { call } from '../helpers/http.ts'
import { Api } from '../helpers/openapi.ts'
import { until } from '../helpers/program.ts'
import {
  type SecretKind,
  secretBranches,
  secretKinds,
  secretVariables,
} from '../helpers/secret-configuration.ts'

const secretOf = (kind: SecretKind) => `s3cret.${kind}.77f1`

let directory: string
let agent: AgentProcess

/** References such as `${VAR}` are of the configuration's language. */
const reference = (to: string) => `\${${to}}`

function configuration() {
  const { auth, targets, otlp, ...branches } = secretBranches(secretOf, directory)
  return {
    ...branches,
    otlp: { ...otlp, endpoint: '127.0.0.1:1' },
    log_level: 'debug',
    self_telemetry: { debug: true, auth, tracing: { enabled: true, sample_rate: 1 } },
    collectors: { prometheus: { targets } },
  }
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-secrets-'))
  writeFileSync(join(directory, 'key'), secretOf('secret-file'))
  writeFileSync(join(directory, 'plain'), secretOf('secret-file-in-plain-key'))
  agent = await AgentProcess.start({
    ports: [],
    endpoint: '127.0.0.1:1',
    config: configuration() as unknown as Tree,
    // The receiver is away, which is told when it has been tried.
    readyStatus: 503,
    env: secretVariables(secretOf),
  })
})
after(async () => {
  await agent?.stop()
  rmSync(directory, { recursive: true, force: true })
})

function checkNone(text: string, where: string): void {
  for (const kind of secretKinds) {
    const secret = secretOf(kind)
    for (const form of [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)])
      assert.ok(!text.includes(form), `${where} holds the secret of kind ${kind}`)
  }
}

const headers = { Authorization: `Bearer ${secretOf('variable-of-key')}` }

test('every secret was taken up', async () => {
  for (const kind of ['bearer-token', 'bearer-tokens', 'variable-of-key'] as const) {
    const { status } = await call(agent.port, '/config', {
      headers: { Authorization: `Bearer ${secretOf(kind)}` },
    })
    assert.equal(status, 200, kind)
  }
  const { body } = await call(agent.port, '/config', { headers })
  const marks = body.toString().split('[REDACTED]').length - 1
  assert.ok(marks >= secretKinds.length - 2, `${marks} redacted: ${body}`)
})

test('no answer of the API holds a secret', async () => {
  const { body } = await call(agent.port, '/openapi.json', { headers })
  for (const { path, method, operation } of new Api(JSON.parse(body.toString())).operations()) {
    const timed = operation.parameters?.some(({ name }) => name === 'seconds')
    const queries = [timed ? '?seconds=1' : '', ...(operation.parameters ? ['?debug=2&seconds=1'] : [])]
    for (const query of queries) {
      if (query.startsWith('?debug') && !timed) continue
      const reply = await call(agent.port, `${path}${query}`, { method, headers })
      assert.ok(reply.status < 500 || reply.status === 503, `${path}: ${reply.body}`)
      const packed = reply.body[0] === 0x1f && reply.body[1] === 0x8b
      checkNone(
        (packed ? gunzipSync(reply.body) : reply.body).toString('latin1'),
        `${method} ${path}${query}`,
      )
    }
  }
})

test('no error about a configuration holds a secret', async () => {
  const config = configuration()
  for (const broken of [
    { ...config, otlp: { ...config.otlp, headers: [secretOf('otlp-headers')] } },
    { ...config, otlp: { ...config.otlp, headers: { 'bad name': secretOf('otlp-headers') } } },
    {
      ...config,
      self_telemetry: { auth: { enabled: true, bearer_token: { deep: secretOf('bearer-token') } } },
    },
    { ...config, self_telemetry: { auth: { enabled: true, bearer_tokn: secretOf('bearer-token') } } },
    { ...config, self_telemetry: { auth: secretOf('bearer-token') } },
    { ...config, resource: { attributes: [reference(`file:${directory}/plain`)] } },
  ]) {
    agent.configure(broken as unknown as Tree)
    const reply = await call(agent.port, '/admin/reload', { method: 'POST', headers })
    assert.equal(reply.status, 400, reply.body.toString())
    checkNone(reply.body.toString(), 'the answer to a reload')
  }
})

test('the log holds no secret, at level debug and after errors', async () => {
  await until('export was tried', 20_000, () => agent.log.some(({ msg }) => /export failed/i.test(msg)))
  agent.signal('SIGUSR1')
  await until('the status is logged', 20_000, () => agent.log.some(({ msg }) => msg === 'status'))
  checkNone(agent.logText(), 'the log')
})
