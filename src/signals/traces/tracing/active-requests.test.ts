import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ActiveRequests } from './active-requests.ts'
import { Request } from './contexts.ts'

const traceId = (i: number) => new Uint8Array(16).fill(i)
const spanId = (i: number) => new Uint8Array(8).fill(i)

function started(): ActiveRequests {
  const requests = new ActiveRequests()
  requests.start()
  return requests
}

test('a request that is over has the link that it was given, and always the same one', () => {
  const requests = started()
  const ids = { traceId: traceId(1), spanId: spanId(2) }
  requests.end(77, ids.traceId, ids.spanId)
  ids.traceId.fill(9)
  const link = requests.linkOf(77)
  assert.deepEqual(link, { traceId: traceId(1), spanId: spanId(2) })
  assert.equal(requests.linkOf(77), link)
  assert.equal(requests.linkOf(78), undefined)
})

test('a link stays as it was told when its place is used again', () => {
  const requests = started()
  requests.end(1, traceId(1), spanId(1))
  const link = requests.linkOf(1)!
  for (let i = 2; i <= 8193; i++) requests.end(i, traceId(5), spanId(5))
  assert.deepEqual(link, { traceId: traceId(1), spanId: spanId(1) })
  assert.equal(requests.linkOf(1), undefined)
  assert.deepEqual(requests.linkOf(8193), { traceId: traceId(5), spanId: spanId(5) })
})

test('of requests that are over the newest 8192 are remembered', () => {
  const requests = started()
  for (let i = 1; i <= 30_000; i++) requests.end(i, traceId(i & 255), spanId(i & 255))
  assert.equal(requests.size, 8192)
  for (let i = 1; i <= 30_000; i++) {
    const link = requests.linkOf(i)
    if (i <= 30_000 - 8192) assert.equal(link, undefined)
    else assert.deepEqual(link, { traceId: traceId(i & 255), spanId: spanId(i & 255) })
  }
})

test('a request under way is found until it is over, or another one has its place', () => {
  const requests = started()
  const numbered = (number: number) => Object.assign(new Request(), { number })
  const one = numbered(5 * 2 ** 31 + 1)
  requests.begin(one)
  assert.equal(requests.inFlight(one.number), one)
  assert.equal(requests.inFlight(5 * 2 ** 31 + 2), undefined)
  one.ended = true
  assert.equal(requests.inFlight(one.number), undefined)
  // Of 30,000 others the cells keep the newest, and each is told by its own number alone.
  let found = 0
  const others = Array.from({ length: 30_000 }, (_, i) => numbered((i % 50) * 2 ** 31 + 1000 * i))
  for (const other of others) requests.begin(other)
  for (const other of others) {
    const request = requests.inFlight(other.number)
    if (request === undefined) continue
    assert.equal(request, other)
    found++
  }
  assert.ok(found > 7000 && found <= 8192, `${found} cells`)
})

test('nothing is remembered while nobody asks, nor from before', () => {
  const requests = new ActiveRequests()
  const one = Object.assign(new Request(), { number: 3 })
  requests.begin(one)
  requests.end(4, traceId(1), spanId(1))
  requests.start()
  assert.deepEqual([requests.inFlight(3), requests.linkOf(4), requests.size], [undefined, undefined, 0])
  requests.begin(one)
  requests.end(4, traceId(1), spanId(1))
  requests.start()
  assert.deepEqual([requests.inFlight(3), requests.linkOf(4), requests.size], [undefined, undefined, 0])
  requests.end(4, traceId(1), spanId(1))
  requests.stop()
  assert.deepEqual([requests.linkOf(4), requests.size], [undefined, 0])
})
