import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { TraceContext } from '../../../foundation/model/stream.ts'
import { Contexts, type Request, type RequestStart } from './contexts.ts'

let ids = 0
const open = () =>
  new Contexts(id => {
    ids++
    id.fill(0)
    Buffer.from(id.buffer).writeUInt32BE(ids, 0)
  })

interface Given extends Partial<RequestStart> {
  readonly context?: TraceContext
}

function begin(contexts: Contexts, given: Given, nowMs = 0): Request {
  const start = { sequence: 0, clientPort: 1, serverPort: 80, pid: 1, tid: 1, blocking: false, local: true }
  const request = contexts.begin({ startUs: 0, server: false, ...start, ...given }, given.context, nowMs)
  if (!request.server) contexts.join(request, given.doubt === true)
  return request
}

const serving = (contexts: Contexts, given: Given) => begin(contexts, { server: true, ...given })
const asking = (contexts: Contexts, given: Given) => begin(contexts, { server: false, ...given })

/** Whose child it is: 0 where nobody's. */
function parentOf(contexts: Contexts, request: Request): number {
  contexts.resolve(request)
  return Buffer.from(request.parentSpanId.buffer).readUInt32BE(0)
}

const idOf = (request: Request) => Buffer.from(request.spanId.buffer).readUInt32BE(0)
const traceOf = (request: Request) => Buffer.from(request.traceId).toString('hex')

test('a chain of processes is one trace, known before any of it is over', () => {
  const contexts = open()
  const nginx = serving(contexts, { pid: 1, tid: 1, sequence: 10, local: false })
  const upstream = asking(contexts, { pid: 1, tid: 1, sequence: 20, clientPort: 2 })
  const node = serving(contexts, { pid: 2, tid: 2, sequence: 20, clientPort: 2 })
  const query = asking(contexts, { pid: 2, tid: 2, sequence: 30, clientPort: 3, local: false })
  assert.equal(parentOf(contexts, query), idOf(node))
  assert.equal(parentOf(contexts, node), idOf(upstream))
  assert.equal(parentOf(contexts, upstream), idOf(nginx))
  assert.equal(parentOf(contexts, nginx), 0)
  assert.equal(new Set([nginx, upstream, node, query].map(traceOf)).size, 1)
})

test('a client that is told late takes over the trace of its server, and so does what it was made for', () => {
  const contexts = open()
  const asked = asking(contexts, { pid: 9, tid: 9, sequence: 10 })
  const nginx = serving(contexts, { pid: 1, tid: 1, sequence: 10 })
  const node = serving(contexts, { pid: 2, tid: 2, sequence: 20, clientPort: 2 })
  const query = asking(contexts, { pid: 2, tid: 2, sequence: 30, clientPort: 3, local: false })
  const upstream = asking(contexts, { pid: 1, tid: 1, sequence: 20, clientPort: 2 })
  assert.deepEqual(
    [query, node, upstream, nginx, asked].map(request => parentOf(contexts, request)),
    [idOf(node), idOf(upstream), idOf(nginx), idOf(asked), 0],
  )
  assert.equal(new Set([asked, nginx, upstream, node, query].map(traceOf)).size, 1)
})

test('where two traces were decided, a client that is told late stays in that of its parent', () => {
  const contexts = open()
  const nginx = serving(contexts, { pid: 1, tid: 1, sequence: 10 })
  const node = serving(contexts, { pid: 2, tid: 2, sequence: 20, clientPort: 2 })
  asking(contexts, { pid: 2, tid: 2, sequence: 30, clientPort: 3, local: false })
  contexts.resolve(nginx)
  const upstream = asking(contexts, { pid: 1, tid: 1, sequence: 20, clientPort: 2 })
  assert.equal(parentOf(contexts, upstream), idOf(nginx))
  assert.equal(parentOf(contexts, node), 0)
  assert.notEqual(traceOf(node), traceOf(upstream))
})

test('a request that its process made while it served two others has no parent', () => {
  const contexts = open()
  const first = serving(contexts, { pid: 1, tid: 1, sequence: 1 })
  serving(contexts, { pid: 1, tid: 1, sequence: 2 })
  assert.equal(parentOf(contexts, asking(contexts, { pid: 1, tid: 1, sequence: 3 })), 0)
  contexts.end(first, 0, false, 0)
  assert.notEqual(parentOf(contexts, asking(contexts, { pid: 1, tid: 1, sequence: 4 })), 0)
})

test('threads that wait in their calls tell apart what they work for', () => {
  const contexts = open()
  const requests = [1, 2, 3].map(tid => serving(contexts, { tid, sequence: tid, blocking: true }))
  for (const [i, request] of requests.entries())
    assert.equal(parentOf(contexts, asking(contexts, { tid: i + 1, sequence: 10 + i })), idOf(request))
  // One that does not wait may have done anything in between.
  serving(contexts, { tid: 4, sequence: 4 })
  assert.equal(parentOf(contexts, asking(contexts, { tid: 4, sequence: 14 })), 0)
  // Nor does one that received two of them.
  serving(contexts, { tid: 3, sequence: 5, blocking: true })
  assert.equal(parentOf(contexts, asking(contexts, { tid: 3, sequence: 15 })), 0)
})

test('where beginnings were not told, only threads that wait in their calls tell', () => {
  const contexts = open()
  serving(contexts, { tid: 1, sequence: 1 })
  assert.equal(parentOf(contexts, asking(contexts, { tid: 1, sequence: 2, doubt: true })), 0)
  const request = serving(contexts, { pid: 2, tid: 2, sequence: 3, blocking: true })
  assert.equal(
    parentOf(contexts, asking(contexts, { pid: 2, tid: 2, sequence: 4, doubt: true })),
    idOf(request),
  )
})

test('another thread of the process works for the request only if it was started for it', () => {
  const contexts = open()
  const request = serving(contexts, { tid: 1, sequence: 1 })
  assert.equal(parentOf(contexts, asking(contexts, { tid: 9, sequence: 2 })), 0)
  contexts.thread(1, 1, 9)
  assert.equal(parentOf(contexts, asking(contexts, { tid: 9, sequence: 3 })), idOf(request))
  contexts.end(request, 0, false, 0)
  const next = serving(contexts, { tid: 1, sequence: 4 })
  assert.equal(parentOf(contexts, asking(contexts, { tid: 9, sequence: 5 })), 0)
  assert.equal(parentOf(contexts, asking(contexts, { tid: 1, sequence: 6 })), idOf(next))
})

test('nothing is made for a request that is over, or for one of another process', () => {
  const contexts = open()
  const request = serving(contexts, { pid: 1, tid: 1, sequence: 1 })
  assert.equal(parentOf(contexts, asking(contexts, { pid: 2, tid: 1, sequence: 2 })), 0)
  contexts.end(request, 0, false, 0)
  assert.equal(parentOf(contexts, asking(contexts, { pid: 1, tid: 1, sequence: 3 })), 0)
})

test('what a request says of itself is stronger than what could be guessed', () => {
  const contexts = open()
  const context = new TraceContext()
  context.traceId.fill(7)
  context.spanId.fill(8)
  context.flags = 1
  context.state = 'vendor=1'
  serving(contexts, { tid: 1, sequence: 1 })
  const told = asking(contexts, { tid: 1, sequence: 2, context })
  contexts.resolve(told)
  assert.deepEqual(
    [traceOf(told), told.parentSpanId[0], told.flags, told.state],
    ['07'.repeat(16), 8, 1, 'vendor=1'],
  )
  const server = serving(contexts, { pid: 2, tid: 2, sequence: 2 })
  const child = asking(contexts, { pid: 2, tid: 2, sequence: 3 })
  assert.equal(parentOf(contexts, child), idOf(server))
  assert.deepEqual([traceOf(child), child.state], ['07'.repeat(16), 'vendor=1'])
})

test('a trace that somebody was told holds, and a client that shows up later takes it over', () => {
  const contexts = open()
  const server = serving(contexts, { pid: 2, tid: 2, sequence: 5 })
  const child = asking(contexts, { pid: 2, tid: 2, sequence: 6 })
  const told = traceOf(child)
  const client = asking(contexts, { pid: 1, tid: 1, sequence: 5 })
  assert.equal(parentOf(contexts, server), idOf(client))
  assert.deepEqual([child, server, client].map(traceOf), [told, told, told])
})

test('whatever comes, the memory is bounded and no parent is of another process or over', () => {
  const step = fc.record({
    kind: fc.constantFrom(
      'serve' as const,
      'ask' as const,
      'end' as const,
      'thread' as const,
      'expire' as const,
    ),
    pid: fc.nat({ max: 2 }),
    tid: fc.nat({ max: 3 }),
    sequence: fc.nat({ max: 20 }),
    blocking: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      const contexts = open()
      const live = new Map<number, { pid: number; tid: number; request: Request }>()
      let nowMs = 0
      for (const { kind, pid, tid, sequence, blocking } of steps) {
        nowMs += 100
        if (kind === 'expire') contexts.expire(nowMs)
        else if (kind === 'thread') contexts.thread(pid, tid, tid + 10)
        else if (kind === 'end') {
          const request = contexts.find({ server: true, sequence, clientPort: 1, serverPort: 80 })
          if (request === undefined) continue
          live.delete(idOf(request))
          contexts.end(request, 0, sequence % 2 === 0, nowMs)
        } else if (kind === 'serve') {
          const old = contexts.find({ server: true, sequence, clientPort: 1, serverPort: 80 })
          if (old !== undefined) live.delete(idOf(old))
          const request = serving(contexts, { pid, tid, sequence, blocking, local: false })
          if (sequence !== 0) live.set(idOf(request), { pid, tid, request })
          else contexts.end(request, 0, false, nowMs)
        } else {
          const parent = parentOf(contexts, asking(contexts, { pid, tid, sequence, clientPort: 2 }))
          if (parent === 0) continue
          assert.deepEqual([live.get(parent)?.pid, live.get(parent)?.tid], [pid, tid])
        }
      }
      assert.ok(contexts.size <= steps.length)
    }),
  )
})

test('more requests than there is room for make the oldest be forgotten', () => {
  const contexts = open()
  for (let i = 1; i <= 40_000; i++) serving(contexts, { sequence: i, pid: i % 100 })
  assert.equal(contexts.size, 8_388)
  assert.equal(contexts.find({ server: true, sequence: 1, clientPort: 1, serverPort: 80 }), undefined)
  assert.ok(contexts.find({ server: true, sequence: 40_000, clientPort: 1, serverPort: 80 }))
})

test('a request that is told late is not made for what its thread came to later', () => {
  const contexts = open()
  serving(contexts, { pid: 1, tid: 1, sequence: 1, startUs: 50 })
  assert.equal(parentOf(contexts, asking(contexts, { pid: 1, tid: 1, sequence: 2, startUs: 40 })), 0)
  assert.notEqual(parentOf(contexts, asking(contexts, { pid: 1, tid: 1, sequence: 3, startUs: 60 })), 0)
})

test('a request whose end was missed does not stand in the way of others for ever', () => {
  const contexts = open()
  serving(contexts, { pid: 1, tid: 1, sequence: 1 })
  contexts.expire(400_000)
  assert.equal(contexts.size, 0)
  const served = begin(contexts, { server: true, pid: 1, tid: 1, sequence: 2 }, 400_000)
  assert.equal(parentOf(contexts, asking(contexts, { pid: 1, tid: 1, sequence: 3 })), idOf(served))
})

test('where memory is short, what ended is forgotten first, and what is not needed again is let go', () => {
  const contexts = new Contexts(() => {}, { limitOf: () => 1_000_000, register: () => () => {} })
  const ask = (sequence: number) => asking(contexts, { sequence, local: false })
  const key = { server: false, clientPort: 1, serverPort: 80 }
  const open = Array.from({ length: 100 }, (_, i) => ask(1 + i))
  for (let i = 0; i < 500; i++) contexts.end(ask(1_000 + i), 0, true, 0)
  assert.equal(contexts.bytes, 600_000)
  assert.equal(contexts.shed(450_000), 450_000)
  assert.equal(contexts.size, 150)
  assert.ok(open.every(({ ended, sequence }) => !ended && contexts.find({ ...key, sequence }) !== undefined))
  assert.equal(contexts.shed(100_000), 100_000)
  assert.equal(contexts.size, 50)
  for (let i = 0; i < 5_000; i++) ask(10_000 + i)
  assert.equal(contexts.size, 1_000)
  assert.equal(contexts.bytes, 1_000_000)
  contexts.expire(400_000)
  contexts.expire(403_000)
  assert.ok(contexts.bytes <= 256_000, `${contexts.bytes}`)
})
