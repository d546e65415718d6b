import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../../test/helpers/soak.ts'
import { type AnswerFault, AnswerReader } from './answer-reader.ts'
import { PageBuffers } from './page-buffers.ts'

const numRuns = soak ? 20_000 : 1000
const buffers = new PageBuffers({ keptBytes: 1e6, leasedBytes: 1e8, keptMs: 1000 })

interface Told {
  fault: AnswerFault | undefined
  body: string
  keeps: boolean
  /** Bytes that came behind the answer were noticed. */
  surplus: boolean
}

/** Reads an answer that comes in pieces; `direct`: as the kernel writes them. */
function read(
  bytes: Buffer,
  sizes: readonly number[],
  direct: boolean,
  bodyBytes = 1e6,
  expectedBytes = 0,
): Told | undefined {
  let told: Told | undefined
  const reader = new AnswerReader({ bodyBytes, expectedBytes }, buffers, fault => {
    told = { fault, body: reader.body.toString('latin1'), keeps: reader.keepsConnection, surplus: false }
  })
  for (let at = 0, turn = 0; at < bytes.length && told === undefined; turn++) {
    let count = Math.min(sizes[turn % sizes.length] ?? 1, bytes.length - at)
    if (direct) {
      const room = reader.room()
      assert.ok(room.length > 0)
      count = Math.min(count, room.length)
      bytes.copy(room, 0, at, at + count)
      reader.wrote(count)
    } else if (!reader.take(bytes.subarray(at, at + count))) told!.surplus = true
    at += count
  }
  if (told === undefined) reader.closed()
  reader.release()
  assert.equal(buffers.leasedBytes, 0)
  return told
}

const texts = fc.string({ maxLength: 300, unit: 'binary-ascii' })
const pieces = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 })

test('a body is the same however it comes: with a length, in chunks, until the end', () => {
  fc.assert(
    fc.property(
      fc.array(texts, { maxLength: 8 }),
      pieces,
      fc.boolean(),
      fc.boolean(),
      (parts, sizes, direct, bare) => {
        const end = bare ? '\n' : '\r\n'
        const body = parts.join('')
        const head = `HTTP/1.1 200 OK${end}Content-Type: text/plain${end}`
        const chunks = parts
          .filter(part => part !== '')
          .map(part => `${part.length.toString(16)};a=b${end}${part}${end}`)
        const forms = [
          `${head}Content-Length: ${body.length}${end}${end}${body}`,
          `${head}Transfer-Encoding: chunked${end}${end}${chunks.join('')}0${end}X: y${end}${end}`,
          `${head}Connection: close${end}${end}${body}`,
        ]
        for (const [i, form] of forms.entries()) {
          const told = read(Buffer.from(form, 'latin1'), sizes, direct)
          assert.deepEqual(told, { fault: undefined, body, keeps: i < 2, surplus: false })
        }
      },
    ),
    { numRuns },
  )
})

test('what comes behind an answer ends the connection, and is in no body', () => {
  fc.assert(
    fc.property(texts, pieces, fc.boolean(), (body, sizes, chunked) => {
      const form = chunked
        ? `Transfer-Encoding: chunked\r\n\r\n${body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`}0\r\n\r\n`
        : `Content-Length: ${body.length}\r\n\r\n${body}`
      const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${form}`, 'latin1')
      const told = read(
        Buffer.concat([bytes, Buffer.from('HTTP/1.1 200 OK\r\n\r\n')]),
        [...sizes, 1e6],
        false,
      )!
      assert.equal(told.body, body)
      assert.equal(told.fault, undefined)
      // In a piece of its own it comes to a connection that is idle.
      const ends = new Set<number>()
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        at += [...sizes, 1e6][turn % (sizes.length + 1)]!
        ends.add(at)
      }
      if (!ends.has(bytes.length)) assert.ok(!told.keeps || told.surplus)
    }),
    { numRuns },
  )
})

test('any bytes end within the limit or at the end, and leave nothing lent', () => {
  const words = fc.constantFrom(
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.0 200 OK\n',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 404 \r\n',
    'Content-Length: 5\r\n',
    'Content-Length: 5000\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Connection: close\r\n',
    '\r\n',
    '\n',
    '5\r\n',
    'ffff\r\n',
    '0\r\n',
    'hello',
    '\u0000\u00ff',
  )
  fc.assert(
    fc.property(
      fc.array(fc.oneof(words, texts), { maxLength: 20 }),
      pieces,
      fc.boolean(),
      (parts, sizes, direct) => {
        const told = read(Buffer.from(parts.join(''), 'latin1'), sizes, direct, 1000)
        if (told?.fault === undefined) assert.ok((told?.body.length ?? 0) <= 20_000)
      },
    ),
    { numRuns: 5 * numRuns },
  )
})

test('a large body in small chunks is put together in place', () => {
  const body = Array.from({ length: 40_000 }, (_, i) => `metric_${i} ${i}\n`).join('')
  const chunks = body.match(/.{1,2048}/gs)!.map(chunk => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  const bytes = Buffer.from(
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`,
  )
  for (const expected of [0, body.length, 1e8])
    assert.equal(read(bytes, [65_536, 1, 777], true, 1e6, expected)?.body, body)
  assert.equal(read(bytes, [65_536], true, body.length)?.body, body)
  assert.equal(read(bytes, [65_536], true, body.length - 1)?.fault?.type, 'body_too_large')
})

test('answers without a body, and such that come after others', () => {
  const keeps = (text: string) => {
    const told = read(Buffer.from(text), [1000], true)
    assert.equal(told?.fault, undefined)
    return told?.keeps
  }
  assert.equal(keeps('HTTP/1.1 204 No Content\r\n\r\n'), true)
  assert.equal(keeps('HTTP/1.1 304\r\nContent-Length: 5\r\n\r\n'), true)
  assert.equal(keeps('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'), true)
  assert.equal(keeps('HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n'), false)
  assert.equal(keeps('HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n'), true)
  assert.equal(keeps('HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\na'), false)
  assert.equal(
    keeps('HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na'),
    true,
  )
  assert.equal(keeps('HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na'.replace(', 1', '')), true)
})

test('a length alone takes no memory', () => {
  const own = new PageBuffers({ keptBytes: 0, leasedBytes: 1e8, keptMs: 1000 })
  const reader = new AnswerReader({ bodyBytes: 1e8, expectedBytes: 0 }, own, () => undefined)
  reader.take(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 90000000\r\n\r\n'))
  assert.ok(own.leasedBytes < 1e6)
  reader.take(Buffer.alloc(1e6, 'a'))
  assert.ok(own.leasedBytes < 4e6)
  reader.release()
})
