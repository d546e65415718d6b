import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Server } from 'node:net'
import { type TestContext, test } from 'node:test'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { type Answer, type ReceiverOptions, startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { freePort } from '../../../test/helpers/program.ts'
import { loadConfig } from '../../config/index.ts'
import { type Outcome, outcomeOf } from '../../kernel/need.ts'
import { receiver } from './receiver.ts'

async function receive(t: TestContext, options: ReceiverOptions = {}) {
  const made = await startReceiver(options)
  t.after(() => made.close())
  return made
}

async function listen(t: TestContext, server: Server): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => new Promise(resolve => server.close(resolve)))
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

/** What the check finds with this configuration; the keys are below `SVC_OTLP_`. */
async function tryWith(keys: Readonly<Record<string, string>>, timeoutMs = 20_000): Promise<Outcome[]> {
  const env = Object.fromEntries(Object.entries(keys).map(([key, value]) => [`SVC_OTLP_${key}`, value]))
  const loaded = loadConfig({ explicit: false, env, cwd: '/nonexistent', systemFile: '/nonexistent' })
  assert.deepEqual(loaded.problems, [])
  return (await receiver.try({ loaded, timeoutMs })).map(finding => outcomeOf(receiver, finding))
}

const states = (found: readonly Outcome[]) => found.map(({ state, fault }) => [state, fault])

test('a receiver takes an empty request of each signal that is made, and nothing is counted', async t => {
  const good = await receive(t)
  const found = await tryWith({ ENDPOINT: good.endpoint, INSECURE: 'true', HEADERS: 'x-a=b' })
  assert.deepEqual(found, [
    {
      state: 'ok',
      detail: `${good.endpoint} accepted an empty request in plain text: traces, metrics, logs, profiles`,
    },
  ])
  assert.deepEqual(good.requests.map(({ signal, items }) => [signal, items]).toSorted(), [
    ['logs', 0],
    ['metrics', 0],
    ['profiles', 0],
    ['traces', 0],
  ])
  for (const { headers } of good.requests) assert.equal(headers['x-a'], 'b')
  assert.equal(good.counts.connections, 1)
})

test('what a receiver refuses is told apart by signal and by reason', async t => {
  const picky = await receive(t)
  const check = async (code: number, want: string[], detail: RegExp) => {
    picky.answer = ({ signal }): Answer =>
      signal === 'metrics' ? { kind: 'refuse', code, message: 'so it is' } : { kind: 'ok' }
    const found = await tryWith({ ENDPOINT: picky.endpoint, INSECURE: 'true' })
    assert.deepEqual(states(found), [['ok', undefined], want])
    assert.match(found[1]!.detail, /^cannot export metrics to 127\.0\.0\.1:\d+: /)
    assert.match(found[1]!.detail, detail)
  }
  await check(12, ['limited', 'unimplemented'], /UNIMPLEMENTED: so it is$/)
  await check(16, ['missing', 'unauthenticated'], /UNAUTHENTICATED: so it is$/)
  await check(7, ['missing', 'forbidden'], /PERMISSION_DENIED: so it is$/)
  await check(14, ['limited', 'unavailable'], /UNAVAILABLE: so it is$/)
  await check(8, ['limited', 'unavailable'], /RESOURCE_EXHAUSTED: so it is$/)
  await check(3, ['unknown', 'refused'], /INVALID_ARGUMENT: so it is$/)
})

test('over HTTP what is wrong is told apart as well, once for the signals that it concerns', async t => {
  const answers = createHttpServer((request, response) => {
    const status = /^\/s(\d+)/.exec(request.url ?? '')?.[1]
    request.resume().once('end', () => response.writeHead(Number(status ?? 200)).end())
  })
  const address = await listen(t, answers)
  const check = async (path: string, want: unknown[], detail: RegExp) => {
    const found = await tryWith({ ENDPOINT: `http://${address}${path}`, PROTOCOL: 'http/protobuf' })
    assert.deepEqual(states(found), [want])
    assert.match(found[0]!.detail, detail)
  }
  await check(
    '',
    ['ok', undefined],
    /accepted an empty request in plain text: traces, metrics, logs, profiles$/,
  )
  const head = '^cannot export traces, metrics, logs, profiles to 127\\.0\\.0\\.1:\\d+: HTTP '
  await check('/s404', ['missing', 'path'], RegExp(`${head}404 Not Found`))
  await check('/s401', ['missing', 'unauthenticated'], RegExp(`${head}401 `))
  await check('/s503', ['limited', 'unavailable'], RegExp(`${head}503 `))
  await check('/s400', ['unknown', 'refused'], RegExp(`${head}400 `))
  const grpc = await receive(t)
  const crossed = await tryWith({ ENDPOINT: `http://${grpc.endpoint}`, PROTOCOL: 'http/json' })
  assert.deepEqual(states(crossed), [['missing', 'no_http']])
  const made = makeCertificates()
  t.after(() => made.remove())
  const { text } = made
  const secure = await listen(t, createHttpsServer({ cert: text('server.pem'), key: text('server.key') }))
  const plain = await tryWith({ ENDPOINT: `http://${secure}`, PROTOCOL: 'http/json' })
  assert.deepEqual(states(plain), [['missing', 'wants_tls']])
})

test('signals that fare alike are told in one line, signals of other receivers in their own', async t => {
  const [one, other] = [await receive(t), await receive(t)]
  one.answer = () => ({ kind: 'refuse', code: 16 })
  const found = await tryWith({ ENDPOINT: one.endpoint, INSECURE: 'true' })
  assert.deepEqual(
    found.map(({ detail }) => detail),
    [`cannot export traces, metrics, logs, profiles to ${one.endpoint}: UNAUTHENTICATED`],
  )
  const apart = await tryWith({
    ENDPOINT: one.endpoint,
    METRICS_ENDPOINT: other.endpoint,
    INSECURE: 'true',
  })
  assert.deepEqual(states(apart), [
    ['missing', 'unauthenticated'],
    ['ok', undefined],
  ])
})

test('a receiver that never answers, or cuts the connection, costs no more than the bound', async t => {
  const slow = await receive(t)
  slow.answer = () => ({ kind: 'stall' })
  const stalled = await tryWith({ ENDPOINT: slow.endpoint, INSECURE: 'true' }, 4000)
  assert.deepEqual(states(stalled), [['limited', 'unavailable']])
  assert.match(stalled[0]!.detail, /no answer within 4000 ms/)
  slow.answer = () => ({ kind: 'cut' })
  const cut = await tryWith({ ENDPOINT: slow.endpoint, METRICS_ENABLED: 'false', INSECURE: 'true' })
  assert.deepEqual(states(cut), [['limited', 'lost']])
})

test('nothing there, no such name and no endpoint are three things', async () => {
  const port = await freePort()
  const nothing = await tryWith({ ENDPOINT: `127.0.0.1:${port}`, INSECURE: 'true' })
  assert.deepEqual(states(nothing), [['missing', 'connect']])
  assert.match(nothing[0]!.detail, /ECONNREFUSED/)
  const nameless = await tryWith({ ENDPOINT: 'no..such:4317' })
  assert.deepEqual(states(nameless), [['missing', 'name']])
  assert.match(nameless[0]!.detail, /no\.\.such/)
  assert.deepEqual(states(await tryWith({})), [['note', 'none']])
})

test('what answers and speaks no gRPC is told from a receiver', async t => {
  const web = await listen(
    t,
    createHttpServer((_request, response) => response.end()),
  )
  assert.deepEqual(states(await tryWith({ ENDPOINT: web, INSECURE: 'true' })), [['missing', 'no_grpc']])
})

test('TLS: plain text, authority, name, age, our own certificate and our own files are told apart', async t => {
  const made = makeCertificates()
  t.after(() => made.remove())
  const { text, file } = made
  const server = { cert: text('server.pem'), key: text('server.key') }
  const plain = await receive(t)
  const secure = await receive(t, { tls: server })
  const mutual = await receive(t, { tls: { ...server, clientCa: text('ca.pem') } })
  const old = await receive(t, { tls: { cert: text('old.pem'), key: text('old.key') } })
  const ca = { TLS_CA_FILE: file('ca.pem') }
  const own = (name: string) => ({ TLS_CERT_FILE: file(`${name}.pem`), TLS_KEY_FILE: file(`${name}.key`) })
  const check = async (
    endpoint: string,
    keys: Readonly<Record<string, string>>,
    want: string | undefined,
  ) => {
    const found = await tryWith({ ENDPOINT: endpoint, ...keys })
    assert.deepEqual(
      found.map(({ fault }) => fault),
      [want],
      JSON.stringify([keys, found.map(({ detail }) => detail)]),
    )
  }
  await check(secure.endpoint, ca, undefined)
  await check(mutual.endpoint, { ...ca, ...own('client') }, undefined)
  await check(secure.endpoint, { TLS_INSECURE_SKIP_VERIFY: 'true' }, undefined)
  await check(plain.endpoint, ca, 'plain_text')
  await check(secure.endpoint, { INSECURE: 'true' }, 'wants_tls')
  await check(secure.endpoint, {}, 'authority')
  await check(secure.endpoint, { TLS_CA_FILE: file('stranger.pem') }, 'authority')
  await check(secure.endpoint, { ...ca, TLS_SERVER_NAME: 'elsewhere' }, 'certificate_name')
  await check(old.endpoint, ca, 'expired')
  await check(mutual.endpoint, ca, 'client_certificate')
  await check(mutual.endpoint, { ...ca, ...own('other') }, 'lost')
  await check(secure.endpoint, { TLS_CA_FILE: file('none.pem') }, 'files')
  await check(
    secure.endpoint,
    { ...ca, TLS_CERT_FILE: file('client.pem'), TLS_KEY_FILE: file('other.key') },
    'files',
  )
  writeFileSync(file('broken.pem'), 'no certificate')
  await check(secure.endpoint, { ...ca, ...own('broken'), TLS_KEY_FILE: file('client.key') }, 'files')
})

test('a port that ends the TLS handshake without a word is told, with the hint', async t => {
  const silent = await listen(
    t,
    createServer(socket => {
      socket.on('error', () => undefined)
      socket.resume()
      socket.end()
    }),
  )
  const [found] = await tryWith({ ENDPOINT: silent })
  assert.deepEqual([found!.state, found!.fault], ['missing', 'tls'])
  assert.match(found!.hints!.config!, /otlp\.insecure: true/)
})

test('the values of headers stand in nothing that is found', async t => {
  const picky = await receive(t)
  picky.answer = () => ({ kind: 'refuse', code: 16, message: 'unknown token' })
  const found = await tryWith({
    ENDPOINT: picky.endpoint,
    INSECURE: 'true',
    HEADERS: 'authorization=Bearer s3cret',
  })
  assert.equal(picky.requests[0]!.headers.authorization, 'Bearer s3cret')
  assert.doesNotMatch(JSON.stringify(found), /s3cret/)
})
