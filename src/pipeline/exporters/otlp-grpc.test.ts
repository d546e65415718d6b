import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { type Certificates, makeCertificates } from '../../../test/helpers/certificates.ts'
import { type Answer, type ReceiverOptions, startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { batchOf, failure, never, noTls } from '../../../test/helpers/sending.ts'
import { compress } from './compression.ts'
import type { ExporterOptions } from './exporter-options.ts'
import { otlpGrpc } from './otlp-grpc.ts'

const turn = () => new Promise(resolve => setImmediate(resolve))

async function receive(t: TestContext, options: ReceiverOptions = {}) {
  const receiver = await startReceiver(options)
  t.after(() => receiver.close())
  return receiver
}

function send(t: TestContext, endpoint: string, options: Partial<ExporterOptions> = {}) {
  const sender = otlpGrpc({
    endpoint,
    insecure: true,
    headers: {},
    compression: 'gzip',
    timeoutMs: 10_000,
    tls: noTls,
    version: '1.2.3',
    ...options,
  })
  t.after(() => sender.close())
  return sender
}

test('a batch arrives whole, compressed and not, large and small', async t => {
  const receiver = await receive(t, { keep: true })
  for (const compression of ['gzip', 'none'] as const) {
    const sender = send(t, receiver.endpoint, { compression })
    for (const spans of [1, 100, 20_000]) {
      receiver.lines.length = 0
      const batch = await compress(batchOf(spans), compression)
      assert.equal(batch.encoding, compression === 'none' || spans === 1 ? 'identity' : compression)
      const receipt = await sender.send(batch, never)
      assert.deepEqual(receipt, { rejected: 0, message: '' })
      assert.deepEqual(
        receiver.lines.map(line => line.name),
        Array.from({ length: spans }, (_, i) => `span ${i}`),
      )
    }
    assert.equal(sender.connected, true)
  }
  assert.equal(receiver.counts.connections, 2)
})

test('requests carry the configured headers, the user agent and a deadline', async t => {
  const receiver = await receive(t)
  const headers = { Authorization: 'Bearer secret ', 'X-Trace-Bin': 'raw \u00fc' }
  await send(t, receiver.endpoint, { headers, timeoutMs: 60_000 }).send(batchOf(1), never)
  const { headers: seen, timeoutMs } = receiver.requests[0]!
  assert.equal(seen.authorization, 'Bearer secret')
  assert.equal(seen['x-trace-bin'], 'raw \u00fc')
  assert.equal(seen['user-agent'], 'svc/1.2.3 OTel-OTLP-Exporter-TypeScript/1.2.3')
  assert.ok(timeoutMs > 30_000 && timeoutMs <= 60_000, String(timeoutMs))
})

test('a header that can never be sent is refused at once, without its value in the message', () => {
  const check = (headers: Record<string, string>, want: RegExp) =>
    assert.throws(
      () => send({ after: () => {} } as unknown as TestContext, 'localhost:4317', { headers }),
      (error: Error) => want.test(error.message) && !error.message.includes('secret'),
    )
  check({ authorization: 'secret\r\nx: y' }, /header "authorization": its value/)
  check({ 'x key': 'secret' }, /header "x key": gRPC allows/)
  check({ 'Content-Type': 'secret' }, /header "Content-Type": the protocol sets it/)
  check({ 'grpc-timeout': 'secret' }, /header "grpc-timeout": the protocol sets it/)
})

test('each gRPC status is sent again or final as OTLP has it', async t => {
  const receiver = await receive(t)
  const sender = send(t, receiver.endpoint)
  const check = async (code: number, type: string, retryable: boolean) => {
    receiver.answer = () => ({ kind: 'refuse', code, message: 'because' })
    const error = await failure(sender.send(batchOf(1), never))
    assert.deepEqual([error.type, error.retryable, error.retryAfterMs], [type, retryable, 0])
    assert.equal(
      error.message,
      `cannot export traces to ${receiver.endpoint}: ${type.toUpperCase()}: because`,
    )
  }
  await check(1, 'cancelled', true)
  await check(2, 'unknown', false)
  await check(3, 'invalid_argument', false)
  await check(4, 'deadline_exceeded', true)
  await check(5, 'not_found', false)
  await check(6, 'already_exists', false)
  await check(7, 'permission_denied', false)
  await check(8, 'resource_exhausted', false)
  await check(9, 'failed_precondition', false)
  await check(10, 'aborted', true)
  await check(11, 'out_of_range', true)
  await check(12, 'unimplemented', false)
  await check(13, 'internal', false)
  await check(14, 'unavailable', true)
  await check(15, 'data_loss', true)
  await check(16, 'unauthenticated', false)
})

test("the server's RetryInfo is told, and makes RESOURCE_EXHAUSTED one to send again", async t => {
  const receiver = await receive(t)
  const sender = send(t, receiver.endpoint)
  for (const code of [8, 14]) {
    receiver.answer = () => ({ kind: 'refuse', code, retryMs: 2500 })
    const error = await failure(sender.send(batchOf(1), never))
    assert.deepEqual([error.retryable, error.retryAfterMs], [true, 2500])
  }
})

test('a partial success tells what was rejected, and a warning may reject nothing', async t => {
  const receiver = await receive(t)
  const sender = send(t, receiver.endpoint)
  const check = async (answer: Omit<Answer & { kind: 'ok' }, 'kind'>, rejected: number, message: string) => {
    receiver.answer = () => ({ kind: 'ok', ...answer })
    assert.deepEqual(await sender.send(batchOf(10), never), { rejected, message })
  }
  await check({ rejected: 3, message: 'too old' }, 3, 'too old')
  await check({ message: 'use the new port' }, 0, 'use the new port')
  await check({ rejected: 10 }, 10, '')
})

test('an answer above 4 MiB is refused for good', async t => {
  const receiver = await receive(t)
  receiver.answer = () => ({ kind: 'ok', padding: 5 << 20 })
  const error = await failure(send(t, receiver.endpoint).send(batchOf(1), never))
  assert.deepEqual([error.type, error.retryable], ['resource_exhausted', false])
})

test('closing lets requests under way end, and then ends the connection', async t => {
  const receiver = await receive(t)
  const answers: (() => void)[] = []
  receiver.answer = () => new Promise(resolve => answers.push(() => resolve({ kind: 'ok' })))
  const sender = send(t, receiver.endpoint)
  const sent = [sender.send(batchOf(1), never), sender.send(batchOf(100), never)]
  while (answers.length < 2) await turn()
  const closed = sender.close()
  answers[0]!()
  await Promise.race(sent)
  assert.equal(sender.connected, true)
  answers[1]!()
  assert.deepEqual(await Promise.all(sent), Array(2).fill({ rejected: 0, message: '' }))
  await closed
  assert.equal(sender.connected, false)
  await sender.close()
})

test('a receiver that stalls costs the deadline; one that cuts the connection is tried again', async t => {
  const receiver = await receive(t)
  receiver.answer = () => ({ kind: 'stall' })
  const late = await failure(send(t, receiver.endpoint, { timeoutMs: 3000 }).send(batchOf(1), never))
  assert.deepEqual([late.type, late.retryable], ['deadline_exceeded', true])
  const sender = send(t, receiver.endpoint)
  receiver.answer = () => ({ kind: 'cut' })
  const cut = await failure(sender.send(batchOf(1), never))
  assert.deepEqual([cut.type, cut.retryable], ['unavailable', true])
  receiver.answer = () => ({ kind: 'ok' })
  await sender.send(batchOf(1), never)
})

test('when the receiver goes away gracefully, nothing under way is lost', async t => {
  const receiver = await receive(t)
  const open: (() => void)[] = []
  receiver.answer = () => new Promise(resolve => open.push(() => resolve({ kind: 'ok' })))
  const sender = send(t, receiver.endpoint)
  const first = sender.send(batchOf(1), never)
  while (open.length < 1) await new Promise(resolve => setTimeout(resolve, 2))
  receiver.goAway()
  const second = sender.send(batchOf(1), never)
  while (open.length < 2) await new Promise(resolve => setTimeout(resolve, 2))
  for (const release of open) release()
  await Promise.all([first, second])
  assert.equal(receiver.counts.traces, 2)
})

test('a closed sender fails in a way that keeps the batch', async t => {
  const receiver = await receive(t)
  const sender = send(t, receiver.endpoint)
  await sender.close()
  await sender.close()
  assert.equal((await failure(sender.send(batchOf(1), never))).retryable, true)
})

test('an endpoint with a path is refused with the way to write it', (t: TestContext) => {
  assert.throws(() => send(t, 'http://a:1/otlp'), /"http:\/\/a:1\/otlp": gRPC has no paths; delete \/otlp$/)
})

function certificates(t: TestContext): Certificates {
  const made = makeCertificates()
  t.after(() => made.remove())
  return made
}

test('TLS: the right authority and name are accepted, all else is refused with the cause', async t => {
  const { file, text } = certificates(t)
  const { port } = await receive(t, { tls: { cert: text('server.pem'), key: text('server.key') } })
  const to = (host: string, tls: Partial<ExporterOptions['tls']>) =>
    send(t, `${host}:${port}`, { insecure: false, tls: { ...noTls, ...tls } }).send(batchOf(10), never)
  await to('127.0.0.1', { caFile: file('ca.pem') })
  await to('127.0.0.1', { caFile: file('ca.pem'), serverName: 'localhost' })
  await to('127.0.0.1', { insecureSkipVerify: true })

  const refused = async (sent: Promise<unknown>, want: RegExp) => {
    const error = await failure(sent)
    assert.deepEqual([error.type, error.retryable], ['tls', true])
    assert.match(error.message, want)
  }
  await refused(to('127.0.0.1', { caFile: file('stranger.pem') }), /unable to verify|self.signed/)
  await refused(to('127.0.0.1', {}), /unable to verify|self.signed/)
  await refused(to('127.0.0.1', { caFile: file('ca.pem'), serverName: 'elsewhere' }), /does not match/)
  await refused(to('127.0.0.1', { caFile: file('none.pem') }), /cannot read ca_file .*none\.pem/)
})

test('TLS: a plain server on the port is refused as such', async t => {
  const { port } = await receive(t)
  const error = await failure(send(t, `https://127.0.0.1:${port}`).send(batchOf(1), never))
  assert.deepEqual([error.type, error.retryable], ['tls', true])
})

test('mutual TLS: the client shows its certificate, and a rotated one with its next connection', async t => {
  const { file, text } = certificates(t)
  const tls = { cert: text('server.pem'), key: text('server.key'), clientCa: text('ca.pem') }
  const receiver = await receive(t, { tls })
  const to = (name: string) =>
    send(t, `https://127.0.0.1:${receiver.port}`, {
      tls: {
        ...noTls,
        caFile: file('ca.pem'),
        certFile: name && file(`${name}.pem`),
        keyFile: name && file(`${name}.key`),
      },
    })
  await to('client').send(batchOf(1), never)
  const nobody = await failure(to('').send(batchOf(1), never))
  assert.equal(nobody.retryable, true)
  // TLS 1.3 tells of it after the handshake, and OpenSSL with the lines of its source around it.
  assert.doesNotMatch(nobody.message, /\n|rec_layer/)
  const rotated = to('other')
  assert.equal((await failure(rotated.send(batchOf(1), never))).retryable, true)
  for (const end of ['pem', 'key']) renameSync(file(`client.${end}`), file(`other.${end}`))
  await rotated.send(batchOf(1), never)
  assert.equal(receiver.counts.traces, 2)
})
