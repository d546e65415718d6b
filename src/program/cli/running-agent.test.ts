import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { svc } from '../../../test/helpers/svc.ts'

/** URL of a server that is no agent. */
async function stranger(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('who answers and is no agent is told so', async t => {
  const polite = await stranger(t, (_, response) => response.end('ok'))
  const check = async (args: string[], want: RegExp) => {
    const { code, out, talk } = await svc(args)
    assert.deepEqual([code, out], [1, ''])
    assert.match(talk, want)
  }
  await check(
    ['status', '--url', polite],
    /^svc: cannot show the status: the answer is not that of an svc agent/,
  )
  const bare = await stranger(t, (_, response) => response.end('{}'))
  await check(
    ['status', '--url', bare],
    /^svc: cannot show the status: the answer is not that of an svc agent of this version; restart svc after an upgrade$/m,
  )
  await check(['top', '--once', '--url', polite], /^svc: cannot show the services: \S+ sent no data/)
  const empty = await stranger(t, ({ url }, response) => {
    response.statusCode = url === '/healthz' ? 200 : 404
    response.end()
  })
  await check(
    ['explain', '1', '--url', empty],
    /^svc: cannot explain 1: the answer is not that of an svc agent: only status 404/,
  )
})

test('a token that is missing is told from one that is wrong', async t => {
  const url = await stranger(t, (_, response) => {
    response.statusCode = 401
    response.end('{"message":"a valid bearer token is needed","details":{}}')
  })
  const check = async (command: string, token: string, want: RegExp) => {
    const { code, talk } = await svc([command, '--url', url], { env: { SVC_TOKEN: token } })
    assert.equal(code, 4)
    assert.match(talk, want)
  }
  await check('status', '', /token is needed; set SVC_TOKEN, or use the admin socket as root\n$/)
  await check('status', 'wrong', /token is needed; the token in SVC_TOKEN is invalid: correct it/)
  await check('profile', 'wrong', /token is needed; the token in SVC_TOKEN is invalid: correct it/)
})

test('a configuration that cannot be read is told of, for the agent is looked for by it', async () => {
  const { code, talk } = await svc(['status', '--config', '/nowhere/svc.yaml'], {
    env: { SVC_SELF_TELEMETRY_ADMIN_SOCKET: '/nowhere/svc.sock', SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:1' },
  })
  assert.equal(code, 1)
  assert.match(talk, /^\/nowhere\/svc\.yaml: cannot read the configuration: there is no such file\n/)
  assert.match(talk, /\nsvc: cannot show the status: no agent answers \(/)
})
