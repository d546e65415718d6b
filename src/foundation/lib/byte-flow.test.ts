import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteFlow, maxLeft } from './byte-flow.ts'

interface Message {
  readonly text: string
  readonly offset: number
  readonly sequence: number
  readonly startNs: number
}

/** Messages are a digit and so many letters; `!` is followed by a number of bytes, in a digit, that do not matter. */
function open(): { flow: ByteFlow; messages: Message[]; losses: () => number } {
  const messages: Message[] = []
  let losses = 0
  const flow = new ByteFlow(true, {
    read(from) {
      while (from.at < from.end) {
        const length = from.bytes[from.at]! - 0x30
        if (from.bytes[from.at] === 0x21) {
          if (from.end - from.at < 2) return
          const skipped = from.bytes[from.at + 1]! - 0x30
          from.at += 2
          from.skip(skipped)
          continue
        }
        if (from.end - from.at < 1 + length) return
        const { offset, sequence, startNs } = from
        const text = from.bytes.toString('latin1', from.at + 1, from.at + 1 + length)
        messages.push({ text, offset, sequence, startNs })
        from.at += 1 + length
      }
    },
    lost() {
      losses++
    },
  })
  return { flow, messages, losses: () => losses }
}

test('however the bytes are cut, the same messages come of them', () => {
  const message = fc.oneof(
    fc.stringMatching(/^[a-z]{0,9}$/).map(text => `${text.length}${text}`),
    fc.stringMatching(/^[x-z]{0,9}$/).map(text => `!${text.length}${text}`),
  )
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 8 })),
      (all, cuts) => {
        const bytes = Buffer.from(all.join(''), 'latin1')
        const whole = open()
        whole.flow.feed(bytes, 0, bytes.length, 5, 4_294_967_290)
        const parts = open()
        let at = 0
        for (let i = 0; at < bytes.length; i++) {
          const to = Math.min(bytes.length, at + (cuts[i % Math.max(1, cuts.length)] ?? 3))
          parts.flow.feed(Buffer.from(bytes.subarray(at, to)), 0, to - at, 5, (4_294_967_290 + at) >>> 0)
          at = to
        }
        assert.deepEqual(parts.messages, whole.messages)
        assert.equal(parts.losses(), 0)
        assert.equal(parts.flow.received, bytes.length)
      },
    ),
  )
})

test('a message has the time of the call that brought its first byte', () => {
  const { flow, messages } = open()
  flow.feed(Buffer.from('1a3b'), 0, 4, 10, 100)
  flow.feed(Buffer.from('c'), 0, 1, 20, 104)
  flow.feed(Buffer.from('d2ef'), 0, 4, 30, 105)
  assert.deepEqual(messages, [
    { text: 'a', offset: 0, sequence: 100, startNs: 10 },
    { text: 'bcd', offset: 2, sequence: 102, startNs: 10 },
    { text: 'ef', offset: 6, sequence: 106, startNs: 30 },
  ])
})

test('what is skipped may be missing, and what is not is told as lost', () => {
  const { flow, messages, losses } = open()
  flow.feed(Buffer.from('!9'), 0, 2, 1, 0)
  flow.gap(4)
  flow.feed(Buffer.from('12345' + '1a'), 0, 7, 2, 6)
  assert.deepEqual([messages.map(({ text }) => text), losses()], [['a'], 0])
  flow.feed(Buffer.from('5ab'), 0, 3, 3, 13)
  flow.gap(1)
  assert.deepEqual([losses(), flow.broken], [1, true])
  flow.feed(Buffer.from('1z'), 0, 2, 4, 17)
  assert.deepEqual(messages.at(-1), { text: 'z', offset: 17, sequence: 17, startNs: 4 })
})

test('no more is kept than there is room for', () => {
  let seen = 0
  let losses = 0
  const flow = new ByteFlow(false, {
    read: from => {
      seen = from.end - from.at
    },
    lost: () => {
      losses++
    },
  })
  for (let i = 0; i < 3; i++) flow.feed(Buffer.alloc(8_000), 0, 8_000, i, 0)
  assert.deepEqual([seen, losses, flow.received], [24_000, 1, 24_000])
  flow.feed(Buffer.alloc(100), 0, 100, 4, 0)
  assert.equal(seen, 100)
  assert.ok(maxLeft >= 16_000)
})
