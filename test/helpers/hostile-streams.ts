import assert from 'node:assert/strict'
import type { ProtocolUnit } from '../../src/foundation/model/protocol.ts'
import type { StreamDecoder } from '../../src/foundation/model/stream.ts'
import { soak } from './soak.ts'
import { type SeenOperation, type SessionOptions, StreamSession } from './stream-session.ts'

/** What the connection and its requests may hold. */
const hostileBytes = 6_000_000
/** What a decoder may keep beside operations. */
const mostKept = 1_000_000

/** A call of the client or the server, or the end of the connection. */
export type Call = readonly [from: 'client' | 'server', bytes: Buffer] | 'closed'

/** How many hostile inputs a test tries. */
export const hostileInputs = soak ? 1_000_000 : 20_000

export function replay(
  unit: ProtocolUnit,
  calls: readonly Call[],
  options: SessionOptions = {},
): StreamSession {
  const session = new StreamSession(unit, options)
  play(session, calls)
  return session
}

/** The same bytes, one in each call. */
export function byteByByte(calls: readonly Call[]): Call[] {
  return calls.flatMap((call): Call[] =>
    call === 'closed' ? ['closed'] : [...call[1]].map((_byte, i) => [call[0], call[1].subarray(i, i + 1)]),
  )
}

/** Operations without what depends on how the bytes were cut into calls. */
export function withoutTimes(
  operations: readonly SeenOperation[],
): Omit<SeenOperation, 'startMs' | 'responseMs' | 'endMs'>[] {
  return operations.map(({ startMs: _start, responseMs: _response, endMs: _end, ...rest }) => rest)
}

/** Cuts the conversation off behind each byte: nothing is left under way, and nothing new is told. */
export function checkTruncations(unit: ProtocolUnit, calls: readonly Call[]): void {
  const whole = replay(unit, [...calls, 'closed']).ended.length
  calls.forEach((call, i) => {
    if (call === 'closed') return
    for (let length = 0; length < call[1].length; length++) {
      const cut: Call[] = [...calls.slice(0, i), [call[0], call[1].subarray(0, length)], 'closed']
      const session = replay(unit, cut)
      assert.equal(session.streams.inFlight, 0)
      assert.equal(session.refused, false)
      assert.ok(session.ended.length <= whole)
    }
  })
}

/** Feeds the conversation with bytes changed, left out, doubled or lost, and bytes of chance. Holds what is kept to its bounds. */
export function checkHostileInputs(unit: ProtocolUnit, calls: readonly Call[], seed = 1): void {
  const random = generator(seed)
  const some = calls.filter(call => call !== 'closed')
  for (let tried = 0; tried < hostileInputs; ) {
    let decoder: StreamDecoder | undefined
    const watched: ProtocolUnit = {
      ...unit,
      create: options => {
        const protocol = unit.create(options)
        return { name: protocol.name, open: connection => (decoder = protocol.open(connection)) }
      },
    }
    const session = new StreamSession(watched, { joined: random(4) === 0, maxBytes: hostileBytes })
    if (random(3) === 0) session.capture = 70 + random(300)
    const first = random(2) === 0 ? 0 : random(some.length)
    for (let i = 0; i < 40; i++, tried++) {
      const [from, bytes] = some[(first + i) % some.length]!
      const hostile = random(4) === 0 ? mutated(bytes, random) : bytes
      const way = random(50) === 0 ? (from === 'client' ? 'server' : 'client') : from
      if (random(40) === 0) session.lose(way === 'client', 1 + random(1_000))
      else if (way === 'client') session.client(hostile)
      else session.serverSays(hostile)
    }
    assert.ok(session.streams.bytes < hostileBytes * 1.1)
    const kept = decoder?.bytes ?? 0
    assert.ok(kept >= 0 && kept <= mostKept, `${kept}`)
    session.close(random(2) * 104)
    assert.equal(session.streams.inFlight, 0)
    assert.equal(session.streams.bytes, 0)
    for (const operation of session.ended) checkOperation(operation)
  }
}

function checkOperation({ name, error, attributes, dimensions, startMs, endMs }: SeenOperation): void {
  assert.notEqual(name, '')
  assert.equal(attributes['error.type'] ?? '', error)
  assert.equal(dimensions['error.type'] ?? '', error)
  assert.ok(endMs >= startMs, `${name} ends before it starts`)
}

function mutated(bytes: Buffer, random: (below: number) => number): Buffer {
  if (bytes.length === 0) return bytes
  const at = random(bytes.length)
  const kind = random(6)
  if (kind === 0) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random(8))])
  if (kind === 1) return Buffer.concat([bytes, bytes.subarray(at)])
  if (kind === 2) return Buffer.from(Array.from({ length: 1 + random(200) }, () => random(256)))
  const copy = Buffer.from(bytes)
  const extremes = [0, 1, 0x7f, 0x80, 0xff]
  if (kind === 3) copy.fill(extremes[random(extremes.length)]!, at, Math.min(copy.length, at + 1 + random(8)))
  else for (let i = 0; i <= random(4); i++) copy[random(copy.length)] = random(256)
  return copy
}

function play(session: StreamSession, calls: readonly Call[]): void {
  for (const call of calls) {
    if (call === 'closed') session.close()
    else if (call[0] === 'client') session.client(call[1])
    else session.serverSays(call[1])
  }
}

/** Numbers below what is asked for, the same ones for the same seed (xorshift32). */
function generator(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}
