import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapGrowth } from '../../../../test/helpers/heap.ts'
import { kernelOperation, setHead } from '../../../../test/helpers/kernel-operation.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { StreamSession } from '../../../../test/helpers/stream-session.ts'
import { agent } from '../../../config/schema-agent.ts'
import { ByteFlow } from '../../../foundation/lib/byte-flow.ts'
import { Connection } from '../../../foundation/model/connection.ts'
import type { Protocol } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection } from '../../../foundation/model/stream.ts'
import type { Keys } from '../../../foundation/schema/tree.ts'
import { svcProtocol } from '../../../kernel/gen/sock.ts'
import { durations } from './durations.ts'
import { protocols } from './index.ts'

/** Those that switch protocols are among them. */
const networkKeys: Keys = agent.keys.ebpf.keys.network.keys

/** One whole message of each protocol that there is. A new protocol adds its own. */
const messages = [
  'GET /users/42?q=1&sig=x HTTP/1.1\r\nHost: a.example:8080\r\nUser-Agent: curl/8\r\nForwarded: for="[::1]:1";proto=https\r\n\r\n',
  'POST /v1/traces HTTP/1.1\r\nHost: [::1]:4318\r\nContent-Type: application/json\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n{}',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '*2\r\n$3\r\nGET\r\n$1\r\na\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
].map(text => Buffer.from(text, 'latin1'))

function fill(operation: Operation, bytes: Buffer, server: boolean): void {
  setHead(operation, bytes)
  operation.connection.server = server
}

/** What the kernel side framed. */
const framed = () => kernelOperation({ status: 200, peerAddress: '10.0.0.2', peerPort: 80 })

/** Describes it and holds the call to what every protocol promises. */
function describe(protocol: Protocol, operation: Operation): boolean {
  const { call } = operation
  call.clear()
  if (!protocol.fillCall?.(operation)) {
    assert.deepEqual([call.name, call.attributes.size, call.dimensions.size], ['', 0, 0])
    return false
  }
  assert.notEqual(call.name, '')
  for (const set of [call.attributes, call.dimensions]) {
    const keys = set.keys.slice(0, set.size)
    assert.equal(new Set(keys).size, keys.length, `a key stands twice in ${keys}`)
    for (const value of set.values.slice(0, set.size))
      assert.ok(value !== undefined && value !== '', String(keys))
  }
  assert.equal(call.attributes.get('error.type') ?? '', call.error)
  isDeclared(call.duration?.name, call.dimensions.keys.slice(0, call.dimensions.size))
  return true
}

/** Dashboards rely on the dimensions that a metric declares. */
function isDeclared(duration: string | undefined, dimensions: readonly (string | undefined)[]): void {
  if (duration === undefined) return
  const declared = durations.find(({ name }) => name === duration)?.dimensions ?? []
  for (const key of dimensions) assert.ok(declared.includes(key ?? ''), `${duration} does not declare ${key}`)
}

/** A connection that is asked for nothing. */
class Unasked extends Connection implements StreamConnection {
  readonly joined = false
  readonly errno = 0
  readonly leaving = false
  begin = () => assert.fail('a request began')
  weigh = () => {}
  asked = () => {}
  end = () => {}
  abandon = () => {}
  release = () => {}
  refuse = () => {}
}

test('names are unique', () => {
  assert.equal(new Set(protocols.map(unit => unit.name)).size, protocols.length)
})

for (const unit of protocols) {
  test(`${unit.name}: its name, its summary and its key are well formed`, () => {
    assert.match(unit.name, /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/)
    assert.match(unit.summary, /^[A-Z].*\.$/)
    assert.match(unit.title, /^\S.*[^.]$/)
    // Another key of that name would take its place.
    assert.match(
      String(networkKeys[unit.key]?.description),
      new RegExp(`spans and metrics for .*${unit.title}`),
    )
    const made = unit.create({ route: () => '' })
    assert.equal(made.name, unit.name)
    const isWhole = unit.confidence === undefined || unit.counted === true
    assert.equal(made.fillCall !== undefined, isWhole, 'whether the kernel side frames or counts it')
    assert.ok((svcProtocol as readonly string[]).includes(unit.name), 'the kernel side does not know it')
  })

  test(`${unit.name}: a decoder reads nothing more of a connection that ended`, () => {
    const decoder = unit.create({ route: () => '' }).open(new Unasked())
    decoder.close()
    for (let byte = 0; byte < 256; byte++) {
      for (const request of [true, false]) {
        const flow = new ByteFlow(request, decoder)
        flow.feed(Buffer.from([byte]), 0, 1, 1, 1)
        assert.equal(flow.kept, 0, `it waits for more behind ${byte}`)
      }
    }
  })

  test(`${unit.name}: whatever bytes come, nothing throws, and nothing stays`, () => {
    const piece = fc.oneof(fc.uint8Array({ maxLength: 80 }), fc.constantFrom<Uint8Array>(...messages))
    const call = fc.record({ client: fc.boolean(), bytes: piece, lost: fc.nat({ max: 3 }) })
    fc.assert(
      fc.property(fc.array(call, { maxLength: 12 }), fc.boolean(), fc.boolean(), (calls, server, joined) => {
        const session = new StreamSession(unit, { server, joined })
        for (const { client, bytes, lost } of calls) {
          if (lost === 3) session.lose(client, 10)
          if (client) session.client(Buffer.from(bytes))
          else session.serverSays(Buffer.from(bytes))
        }
        session.close(104)
        assert.equal(session.streams.inFlight, 0)
        for (const { duration, dimensions } of session.ended) isDeclared(duration, Object.keys(dimensions))
      }),
      { numRuns: soak ? 200_000 : 2_000 },
    )
  })
}

for (const unit of protocols.filter(each => each.confidence === undefined)) {
  const create = () => unit.create({ route: (_operation, path) => path })

  test(`${unit.name}: it recognises at least one message of this test`, () => {
    const protocol = create()
    const operation = framed()
    const recognised = messages.filter(message => {
      fill(operation, message, true)
      return describe(protocol, operation)
    })
    assert.ok(recognised.length > 0)
  })

  test(`${unit.name}: nothing is not a message`, () => {
    const operation = framed()
    fill(operation, Buffer.alloc(0), true)
    assert.equal(describe(create(), operation), false)
  })

  test(`${unit.name}: a message cut behind any byte is parsed or refused, and reads nothing beyond the cut`, () => {
    const protocol = create()
    for (const message of messages) {
      for (let cut = 0; cut <= message.length; cut++) {
        const exact = framed()
        fill(exact, message.subarray(0, cut), true)
        const described = describe(protocol, exact)
        const inside = framed()
        fill(inside, Buffer.concat([message.subarray(0, cut), Buffer.from('\r\nHost: beyond\r\n')]), true)
        inside.head.end = cut
        assert.equal(describe(protocol, inside), described)
        assert.deepEqual(inside.call, exact.call)
      }
    }
  })

  test(`${unit.name}: no bytes make it throw`, () => {
    const protocol = create()
    const operation = framed()
    const pieces = fc.array(
      fc.oneof(fc.uint8Array({ maxLength: 30 }), fc.constantFrom<Uint8Array>(...messages)),
      { maxLength: 3 },
    )
    fc.assert(
      fc.property(
        pieces,
        fc.integer({ min: -3, max: 200 }),
        fc.integer({ min: -3, max: 400 }),
        fc.boolean(),
        (parts, start, end, server) => {
          fill(operation, Buffer.concat(parts), server)
          operation.head.start = start
          operation.head.end = end
          describe(protocol, operation)
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test(`${unit.name}: a hundred thousand calls, no two alike, leave no growth behind`, async () => {
    const protocol = create()
    const operation = framed()
    const bytes = Buffer.alloc(4_096)
    let counter = 0
    const grown = await heapGrowth(() => {
      for (let i = 0; i < 25_000; i++) {
        const size = bytes.write(messageNumber(counter++), 'latin1')
        fill(operation, bytes, i % 2 === 0)
        operation.head.end = size
        operation.call.clear()
        protocol.fillCall?.(operation)
      }
    })
    assert.ok(grown < 1 << 20, `${grown} bytes more`)
  })
}

function messageNumber(n: number): string {
  const message = messages[n % messages.length]!.toString('latin1')
  return message
    .replace('/users/42', `/users/${n}/${n}`)
    .replace('a.example', `host${n}`)
    .replace('curl', `agent${n}`)
}
