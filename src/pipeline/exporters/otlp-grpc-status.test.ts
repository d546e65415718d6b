import assert from 'node:assert/strict'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { withoutZstd } from '../../../test/helpers/host-needs.ts'
import { type Answer, startReceiver } from '../../../test/helpers/otlp-receiver.ts'
import { failure, never, noTls } from '../../../test/helpers/sending.ts'
import { plainBatch } from '../../foundation/model/batch.ts'
import { compress } from './compression.ts'
import type { ExporterOptions } from './exporter-options.ts'
import { otlpGrpc } from './otlp-grpc.ts'

const empty = plainBatch('traces', 0, new Uint8Array())

async function receive(t: TestContext) {
  const receiver = await startReceiver()
  t.after(() => receiver.close())
  return receiver
}

function open(t: TestContext, endpoint: string, options: Partial<ExporterOptions> = {}) {
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

/** OTLP specification, "Failures": 1 is to be sent again, 0 is final, in the order of the codes from 1 on. */
const codes = [
  ['cancelled', 1],
  ['unknown', 0],
  ['invalid_argument', 0],
  ['deadline_exceeded', 1],
  ['not_found', 0],
  ['already_exists', 0],
  ['permission_denied', 0],
  ['resource_exhausted', 0],
  ['failed_precondition', 0],
  ['aborted', 1],
  ['out_of_range', 1],
  ['unimplemented', 0],
  ['internal', 0],
  ['unavailable', 1],
  ['data_loss', 1],
  ['unauthenticated', 0],
] as const

/** Bytes of a google.rpc.Status that break off, contradict themselves, or are of another message. */
const malformed = ['08', '1a05', '1aff7f', 'ffffffffffffffffffff01', '1a020a00', '0800', '1a0412020a01'].map(
  hex => Buffer.from(hex, 'hex'),
)

test('each gRPC status means the same however it is told', async t => {
  const receiver = await receive(t)
  const sender = open(t, receiver.endpoint)
  for (const [i, [type, again]] of codes.entries()) {
    const code = i + 1
    const check = async (
      answer: Omit<Answer & { kind: 'refuse' }, 'kind' | 'code'>,
      retryable: boolean,
      wait: number,
    ) => {
      for (const headersFirst of [false, true]) {
        receiver.answer = () => ({ kind: 'refuse', code, headersFirst, ...answer })
        const error = await failure(sender.send(empty, never))
        const told = [error.type, error.retryable, error.retryAfterMs, error.limitBytes]
        assert.deepEqual(told, [type, retryable, wait, 0], `${type} ${JSON.stringify(answer)}`)
      }
    }
    await check({}, again === 1, 0)
    await check({ message: 'because of ü, 100 % sure' }, again === 1, 0)
    await check({ message: 'busy', retryMs: 1500 }, again === 1 || type === 'resource_exhausted', 1500)
    await check({ message: 'busy', retryMs: 0 }, again === 1 || type === 'resource_exhausted', 0)
    for (const details of malformed) await check({ message: 'odd', details }, again === 1, 0)
  }
})

test("a server's words may be long, and one that exceeds every header costs the connection alone", async t => {
  const receiver = await receive(t)
  const sender = open(t, receiver.endpoint)
  for (const [i, [type, again]] of codes.entries()) {
    for (const headersFirst of [false, true]) {
      receiver.answer = () => ({ kind: 'refuse', code: i + 1, message: 'x'.repeat(60_000), headersFirst })
      const long = await failure(sender.send(empty, never))
      assert.deepEqual([long.type, long.retryable], [type, again === 1])
      assert.ok(long.message.length < 4300, String(long.message.length))
      // Beyond the 64 KiB that nghttp2 takes, nobody knows the status.
      receiver.answer = () => ({ kind: 'refuse', code: i + 1, message: 'x'.repeat(100_000), headersFirst })
      const lost = await failure(sender.send(empty, never))
      assert.deepEqual([lost.type, lost.retryable], ['unavailable', true])
    }
    receiver.answer = () => ({ kind: 'ok' })
    await sender.send(empty, never)
  }
})

test('a request above the limit of the receiver is told as too large, whatever it calls that', async t => {
  const receiver = await receive(t)
  const sender = open(t, receiver.endpoint)
  const check = async (
    answer: Omit<Answer & { kind: 'refuse' }, 'kind'>,
    want: [string, boolean, number],
  ) => {
    receiver.answer = () => ({ kind: 'refuse', ...answer })
    const error = await failure(sender.send(empty, never))
    assert.deepEqual([error.type, error.retryable, error.limitBytes], want)
  }
  const go = 'grpc: received message larger than max (5242885 vs. 4194304)'
  await check({ code: 8, message: go }, ['too_large', false, 4194304])
  await check({ code: 8, message: 'Max message size exceeded' }, ['too_large', false, 0])
  await check({ code: 8, message: go, retryMs: 100 }, ['resource_exhausted', true, 0])
  await check({ code: 8, message: 'quota of 4194304 exceeded' }, ['resource_exhausted', false, 0])
  const rust = 'Error, decoded message length too large: found 5242885 bytes, the limit is: 4194304 bytes'
  await check({ code: 11, message: rust }, ['too_large', false, 4194304])
  await check({ code: 14, message: go }, ['unavailable', true, 0])
})

test('the limit of a real receiver is read from its refusal', async t => {
  const receiver = await receive(t)
  const large = plainBatch('traces', 1, Buffer.alloc(5 << 20))
  for (const compression of ['none', 'gzip'] as const) {
    const error = await failure(
      open(t, receiver.endpoint, { compression }).send(await compress(large, compression), never),
    )
    assert.deepEqual(
      [error.type, error.retryable, error.limitBytes],
      ['too_large', false, 4 << 20],
      error.message,
    )
  }
})

test('a batch that was taken is not sent again, and not lost in the books, whatever the answer holds', async t => {
  const server = createServer()
  let body: Uint8Array = new Uint8Array()
  let status = '0'
  server.on('stream', stream => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }))
    stream.end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const sender = open(t, `127.0.0.1:${(server.address() as AddressInfo).port}`)
  const check = async (bytes: number[], want: RegExp) => {
    body = Uint8Array.from(bytes)
    const receipt = await sender.send(empty, never)
    assert.equal(receipt.rejected, 0)
    assert.match(receipt.message, want)
  }
  await check([1, 2, 3], /^cannot read the answer: the answer is not one gRPC message/)
  await check([0, 0, 0, 0, 9, 1], /^cannot read the answer: the answer is not one gRPC message/)
  await check([1, 0, 0, 0, 1, 1], /^cannot read the answer: the answer is compressed with an unknown method/)
  await check([0, 0, 0, 0, 1, 0x0a], /^cannot read the answer: cannot read protobuf message/)
  status = '00'
  await check([0, 0, 0, 0, 0], /^$/)
})

test('a proxy that finds the request too large says so without a gRPC status', async t => {
  const server = createServer()
  server.on('stream', stream => stream.respond({ ':status': 413 }, { endStream: true }))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const error = await failure(
    open(t, `127.0.0.1:${(server.address() as AddressInfo).port}`).send(empty, never),
  )
  assert.deepEqual([error.type, error.retryable, error.limitBytes], ['too_large', false, 0])
})

test('a backlog that was compressed by other settings is sent by those of now', async t => {
  const receiver = await receive(t)
  const request = Buffer.from('0a060a0022024142'.repeat(200), 'hex')
  const compressed = await compress(plainBatch('traces', 0, request), 'gzip')
  assert.equal(compressed.encoding, 'gzip')
  await open(t, receiver.endpoint, { compression: 'none' }).send(compressed, never)
  const broken = { ...compressed, body: compressed.body.subarray(0, 10) }
  const error = await failure(open(t, receiver.endpoint, { compression: 'none' }).send(broken, never))
  assert.deepEqual([error.type, error.retryable], ['internal', false])
  assert.match(error.message, /cannot export traces to .*: cannot decompress a batch of traces \(gzip\)/)
})

test('a receiver that refuses zstd gets gzip', {
  skip: withoutZstd,
}, async t => {
  const receiver = await receive(t)
  const request = Buffer.from('0a060a0022024142'.repeat(200), 'hex')
  const compressed = await compress(plainBatch('traces', 0, request), 'zstd')
  assert.equal(compressed.encoding, 'zstd')
  // grpc-js knows no zstd, and refuses it before the test's answer is asked for.
  const sender = open(t, receiver.endpoint, { compression: 'zstd' })
  for (let i = 1; i <= 2; i++) {
    const receipt = await sender.send(compressed, never)
    assert.match(receipt.message, /does not accept zstd.* set otlp\.compression to gzip/)
    assert.equal(receiver.requests.length, i)
  }
})
