import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import fc from 'fast-check'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { startHttpReceiver } from '../../../../test/helpers/otlp-http-receiver.ts'
import { decodeRequest as decodeByDefinitions, requestType } from '../../../../test/helpers/otlp-proto.ts'
import { assertConformant, profileFaults } from '../../../../test/helpers/profcheck.ts'
import { never, noTls } from '../../../../test/helpers/sending.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import type { Batch } from '../../../foundation/model/batch.ts'
import { resource } from '../../../foundation/model/resource.ts'
import { compress } from '../compression.ts'
import { otlpGrpc } from '../otlp-grpc.ts'
import { otlpHttp } from '../otlp-http.ts'
import { decodeRequest } from './decode.ts'
import { profileEncoding } from './encode-profile.ts'
import { jsonToRequest } from './from-json.ts'
import { requestToJson } from './json.ts'
import { RequestBuilder } from './request.ts'

const numRuns = soak ? 2000 : 100

const shop = resource({ 'service.name': 'shop' })
const bank = resource({ 'service.name': 'bank' })
const scope = { name: 'svc/profile', version: '1' }

const entries = fc.array(fc.tuple(fc.constantFrom(shop, bank), arbitrary.profile), {
  minLength: 1,
  maxLength: 6,
})

function batchOf(list: typeof entries extends fc.Arbitrary<infer T> ? T : never): Batch {
  const builder = new RequestBuilder(profileEncoding())
  for (const [from, profile] of list) builder.add(from, scope, profile)
  return builder.take()[0]!
}

/** Some request with something of everything. */
const batch = batchOf(fc.sample(entries, { numRuns: 20, seed: 3 }).flat())

/** What the model sees of a request. */
function items(body: Uint8Array): string[] {
  const found: string[] = []
  const { changed, leftOut } = decodeRequest('profiles', body, (from, group, item) =>
    found.push(JSON.stringify([from, group, item])),
  )
  assert.deepEqual([[...changed], [...leftOut]], [[], []])
  return found
}

test('profiles are the same when they were JSON in between', () => {
  fc.assert(
    fc.property(entries, list => {
      const { body } = batchOf(list)
      const again = jsonToRequest('profiles', JSON.parse(requestToJson('profiles', body)))
      assertConformant(again)
      assert.deepEqual(items(again), items(body))
    }),
    { numRuns },
  )
})

test('a request of profiles conforms as it arrives over gRPC', async t => {
  const bodies: Buffer[] = []
  const endpoint = await grpcReceiver(t, body => bodies.push(body))
  for (const compression of ['none', 'gzip'] as const) {
    const sender = otlpGrpc({ endpoint, ...settings, compression })
    t.after(() => sender.close())
    await sender.send(await compress(batch, compression), never)
    const body = bodies.pop()!
    assertConformant(body)
    assert.deepEqual(items(body), items(batch.body))
  }
})

test('a request of profiles conforms as it arrives over HTTP, as protobuf and as JSON', async t => {
  const receiver = await startHttpReceiver()
  t.after(() => receiver.close())
  for (const protocol of ['http/protobuf', 'http/json'] as const)
    for (const compression of ['none', 'gzip'] as const) {
      const { endpoint } = receiver
      const sender = otlpHttp({ protocol, endpoint, ownEndpoint: false, ...settings, compression })
      t.after(() => sender.close())
      await sender.send(await compress(batch, compression), never)
      const { path, body: wire } = receiver.requests.at(-1)!
      assert.equal(path, '/v1development/profiles')
      const body = compression === 'gzip' ? gunzipSync(wire) : wire
      const message = protocol === 'http/json' ? fromJson(body) : decodeByDefinitions('profiles', body)
      assert.deepEqual(profileFaults(message), [])
      assert.deepEqual(message, decodeByDefinitions('profiles', batch.body))
    }
})

const settings = { insecure: true, headers: {}, timeoutMs: 10_000, tls: noTls, version: '1.2.3' }

/** A service that keeps the messages as they are. */
async function grpcReceiver(t: TestContext, take: (body: Buffer) => void): Promise<string> {
  const server = new Server()
  const same = (body: Buffer) => body
  server.register(
    '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export',
    (call: { request: Buffer }, callback: (error: null, body: Buffer) => void) => {
      take(call.request)
      callback(null, Buffer.alloc(0))
    },
    same,
    same,
    'unary',
  )
  t.after(() => server.forceShutdown())
  return new Promise((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(`127.0.0.1:${port}`),
    ),
  )
}

/** OTLP JSON read by the definitions, which take identifiers in base64. */
function fromJson(body: Buffer): Record<string, unknown> {
  const type = requestType('profiles')
  const object = JSON.parse(body.toString(), (key, value) =>
    key === 'traceId' || key === 'spanId' ? Buffer.from(value, 'hex').toString('base64') : value,
  )
  return type.toObject(type.fromObject(object), { longs: String, bytes: String })
}
