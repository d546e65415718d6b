import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../test/helpers/soak.ts'
import {
  Attributes,
  askKernel,
  attribute,
  genericFamily,
  protocols,
  Range,
  readMessages,
  text,
  u32,
} from './netlink.ts'

const numRuns = soak ? 200_000 : 2000

function attributesOf(bytes: Buffer): [type: number, content: string][] {
  const found: [number, string][] = []
  const attributes = new Attributes()
  for (attributes.within(new Range().reset(bytes, 0, bytes.length)); attributes.next(); )
    found.push([attributes.type, attributes.view().toString('latin1')])
  return found
}

test('attributes are read back as they were written, padding left out', () => {
  const bytes = Buffer.concat([
    attribute(3, text('lo')),
    attribute(0x8004, Buffer.alloc(0)),
    attribute(5, u32(7)),
  ])
  assert.equal(bytes.length, 8 + 4 + 8)
  assert.deepEqual(attributesOf(bytes), [
    [3, 'lo\0'],
    [4, ''],
    [5, '\x07\0\0\0'],
  ])
})

test('numbers and texts end where their range does', () => {
  const range = new Range().reset(Buffer.from('00010203040506070809', 'hex'), 1, 10)
  assert.deepEqual(
    [range.u8(), range.u16(1), range.u32(1), range.u64(1)],
    [1, 0x302, 0x5040302, Number(0x908070605040302n)],
  )
  assert.throws(() => range.u64(2), /4 bytes at 6 of 9/)
  assert.throws(() => range.u8(9), /1 bytes at 9 of 9/)
  assert.equal(new Range().reset(Buffer.from('eth0'), 0, 3).text(), 'eth')
  assert.equal(new Range().reset(Buffer.from('a\0b'), 0, 3).text(), 'a')
})

test('lengths that lie are errors', () => {
  for (const length of [0, 3, 13, 0xffff]) {
    const bytes = attribute(1, Buffer.alloc(8))
    bytes.writeUInt16LE(length, 0)
    assert.throws(() => attributesOf(bytes), /an attribute of \d+ bytes in 12/)
  }
  for (const length of [0, 15, 33]) {
    const bytes = Buffer.alloc(32)
    bytes.writeUInt32LE(length, 0)
    assert.throws(() => readMessages(bytes, 32, () => undefined), /a message of \d+ bytes at 0 of 32/)
  }
  assert.deepEqual(attributesOf(Buffer.from('040001', 'hex')), [])
})

test('the kernel tells all links by name', () => {
  const names: string[] = []
  const attributes = new Attributes()
  askKernel(protocols.route, { type: 18, payload: Buffer.alloc(16) }, link => {
    for (attributes.within(link, 16); attributes.next(); )
      if (attributes.type === 3) names.push(attributes.text())
  })
  assert.ok(
    Object.keys(networkInterfaces()).every(name => names.includes(name)),
    names.join(),
  )
})

test('a refusal is an error with its code, and the next question is answered', () => {
  const ask = (type: number) =>
    askKernel(protocols.route, { type, payload: Buffer.alloc(16) }, () => undefined)
  assert.throws(() => ask(250), { code: 'ENOTSUP' })
  assert.throws(
    () => askKernel(protocols.route, { type: 18, payload: Buffer.alloc(16) }, () => ask(18)),
    /the previous answer is still being read/,
  )
  ask(18)
})

test('families of generic netlink have numbers', () => {
  assert.equal(genericFamily('nlctrl'), 16)
  assert.equal(genericFamily('no such family'), undefined)
})

test('an answer longer than the buffer is handed over in parts, each message once', async t => {
  // 1500 sockets that listen make some 150 KB.
  const servers = Array.from({ length: 1500 }, () => createServer())
  t.after(() => Promise.all(servers.map(server => new Promise(resolve => server.close(resolve)))))
  await Promise.all(
    servers.map(server => new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))),
  )
  const payload = Buffer.alloc(56)
  payload[0] = 2
  payload[1] = 6
  payload.writeUInt32LE(1 << 10, 4)
  const ports = new Map<number, number>()
  askKernel(protocols.sockDiag, { type: 20, payload }, socket => {
    const port = (socket.u8(4) << 8) | socket.u8(5)
    ports.set(port, (ports.get(port) ?? 0) + 1)
  })
  for (const server of servers) {
    const { port } = server.address() as { port: number }
    assert.equal(ports.get(port), 1)
  }
})

const bytesOf = (most: number) => fc.uint8Array({ maxLength: most }).map(bytes => Buffer.from(bytes))

test('whatever attributes hold, they are read back', () => {
  const content = fc.tuple(fc.nat(0x3fff), bytesOf(64))
  fc.assert(
    fc.property(fc.array(content, { maxLength: 20 }), fc.nat(4), (written, words) => {
      const made = written.map(([type, content]) => attribute(type, content))
      const before = Buffer.alloc(4 * words, 1)
      const bytes = Buffer.concat([before, ...made])
      const attributes = new Attributes()
      const read: [number, Buffer][] = []
      for (attributes.within(new Range().reset(bytes, 0, bytes.length), before.length); attributes.next(); )
        read.push([attributes.type, Buffer.from(attributes.view())])
      assert.deepEqual(read, written)
    }),
    { numRuns },
  )
})

test('any bytes are messages and attributes within them, or an error in words', () => {
  // Lengths that are nearly right lead further than those that are not.
  const lengths = fc.tuple(fc.nat(80), fc.constantFrom(0, 1, 16, 20, 0xffff)).map(([length, type]) => {
    const header = Buffer.alloc(16)
    header.writeUInt32LE(length, 0)
    header.writeUInt16LE(type, 4)
    return header
  })
  const part = fc.oneof(bytesOf(48), lengths)
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }).map(Buffer.concat), bytesOf(40), (answer, behind) => {
      const bytes = Buffer.concat([answer, behind])
      const attributes = new Attributes()
      let messages = 0
      let end = 0
      try {
        readMessages(bytes, answer.length, message => {
          messages++
          assert.ok(message.start >= end && message.end >= message.start && message.end <= answer.length)
          end = message.end
          let at = message.start
          for (attributes.within(message); attributes.next(); at = attributes.end) {
            assert.ok(attributes.start >= at + 4 && attributes.end <= message.end)
            assert.equal(attributes.view().length, attributes.length)
            assert.ok(attributes.text().length <= attributes.length)
          }
        })
      } catch (error) {
        assert.match((error as Error).message, /^cannot read a netlink answer: /)
      }
      assert.ok(messages <= answer.length / 16)
    }),
    { numRuns },
  )
})

test('a number is within its range, or an error', () => {
  const place = fc.integer({ min: 0, max: 24 })
  fc.assert(
    fc.property(bytesOf(16), place, place, (bytes, start, at) => {
      const from = Math.min(start, bytes.length)
      const range = new Range().reset(bytes, from, bytes.length)
      const readings: [size: number, read: () => number][] = [
        [1, () => range.u8(at)],
        [2, () => range.u16(at)],
        [4, () => range.u32(at)],
        [8, () => range.u64(at)],
      ]
      for (const [size, read] of readings)
        if (at + size > range.length) assert.throws(read, /^Error: cannot read a netlink answer: /)
        else assert.ok(read() >= 0 && read() <= 2 ** (8 * size))
    }),
    { numRuns },
  )
})
