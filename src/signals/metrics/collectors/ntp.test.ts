import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { readWith } from '../../../../test/helpers/collector.ts'
import { ntp } from './ntp.ts'

const epochSeconds = 2_208_988_800

interface Clock {
  /** Seconds that the server is ahead. */
  readonly ahead?: number
  readonly leap?: number
  readonly stratum?: number
  readonly mode?: number
  readonly dispersion?: number
  readonly referenceAge?: number
  readonly edit?: (packet: Buffer) => Buffer
}

/** A server of NTP (RFC 5905, section 7.3) on this host; gives its port and what it was asked. */
async function serve(t: TestContext, clock: Clock): Promise<{ port: number; asked: Buffer[] }> {
  const socket = createSocket('udp4')
  t.after(() => socket.close())
  const asked: Buffer[] = []
  socket.on('message', (question, { port, address }) => {
    asked.push(question)
    const now = Date.now() / 1000 + (clock.ahead ?? 0)
    const packet = Buffer.alloc(48)
    packet[0] = ((clock.leap ?? 0) << 6) | (4 << 3) | (clock.mode ?? 4)
    packet[1] = clock.stratum ?? 2
    packet.writeUInt32BE(0x8000, 4)
    packet.writeUInt32BE((clock.dispersion ?? 0.25) * 65536, 8)
    writeTime(packet, 16, now - (clock.referenceAge ?? 60))
    question.copy(packet, 24, 40, 48)
    writeTime(packet, 32, now)
    writeTime(packet, 40, now)
    socket.send(clock.edit ? clock.edit(packet) : packet, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { port: socket.address().port, asked }
}

function writeTime(packet: Buffer, at: number, unixSeconds: number): void {
  const seconds = Math.floor(unixSeconds)
  packet.writeUInt32BE((seconds + epochSeconds) % 2 ** 32, at)
  packet.writeUInt32BE(Math.floor((unixSeconds - seconds) * 2 ** 32), at + 4)
}

async function read(t: TestContext, clock: Clock, options: Record<string, unknown> = {}) {
  const { port, asked } = await serve(t, clock)
  const tolerant = { local_offset_tolerance: 500 }
  const ask = () => {
    asked.length = 0
    return readWith(ntp, { server_port: port, ...tolerant, ...options })
  }
  let { lines, outcome, reason } = await ask()
  // Both sides are one process, which may get no turn for that second.
  for (let again = 0; again < 4 && /no answer within/.test(reason); again++)
    ({ lines, outcome, reason } = await ask())
  const value = (name: string) =>
    Number(lines.find(line => line.startsWith(`node_ntp_${name} `))?.split(' ')[1])
  return { value, outcome, reason, asked }
}

test('what the server says is shown', async t => {
  const { value, outcome, asked } = await read(t, { ahead: 100, leap: 0 }, { protocol_version: 3 })
  assert.equal(outcome, 'success')
  assert.equal(asked[0]![0], (3 << 3) | 3)
  assert.equal(value('stratum'), 2)
  assert.equal(value('leap'), 0)
  assert.equal(value('root_delay_seconds'), 0.5)
  assert.equal(value('root_dispersion_seconds'), 0.25)
  assert.ok(Math.abs(value('offset_seconds') - 100) < 2)
  assert.ok(value('rtt_seconds') >= 0 && value('rtt_seconds') < 2)
  assert.ok(Math.abs(value('reference_timestamp_seconds') - (Date.now() / 1000 + 40)) < 5)
  assert.equal(value('sanity'), 0)
})

test('a server is sane while it is in sync, near and right', async t => {
  const sanity = async (clock: Clock, options: Record<string, unknown> = {}) =>
    (await read(t, clock, options)).value('sanity')
  assert.equal(await sanity({}), 1)
  assert.equal(await sanity({ leap: 3 }), 0)
  assert.equal(await sanity({ stratum: 0 }), 0)
  assert.equal(await sanity({ stratum: 16 }), 0)
  assert.equal(await sanity({ dispersion: 17 }, { max_distance: 60_000 }), 0)
  assert.equal(await sanity({ referenceAge: 200_000 }), 0)
  assert.equal(await sanity({ referenceAge: -30 }), 0)
  assert.equal(await sanity({}, { max_distance: 400 }), 0)
  assert.equal(await sanity({ ahead: 30 }), 0)
  // On the day of a leap second servers may be off by one.
  assert.equal(await sanity({ ahead: 1.2, leap: 1 }), 1)
})

test('a clock that was never set has the time at which the next era begins', async t => {
  const { value } = await read(t, { edit: packet => packet.fill(0, 16, 24) })
  assert.equal(value('reference_timestamp_seconds'), 2 ** 32 - epochSeconds)
})

test('what is no answer fails', async t => {
  const check = async (edit: (packet: Buffer) => Buffer, why: RegExp) => {
    const { outcome, reason } = await read(t, { edit })
    assert.equal(outcome, 'failed')
    assert.match(reason, why)
  }
  await check(packet => packet.subarray(0, 40), /invalid response: 40 bytes/)
  await check(packet => packet.fill(0xff, 24, 32), /for another request/)
  await check(packet => packet.fill(0, 0, 1), /not from a server/)
  await check(packet => packet.fill(0, 40, 48), /no time/)
  await check(packet => packet.fill(0xff, 33, 36), /ran backwards/)
})

test('a port where nobody listens, and a server that says nothing, fail', async t => {
  const { port } = await serve(t, {})
  const silent = createSocket('udp4')
  t.after(() => silent.close())
  silent.bind(0, '127.0.0.1')
  await once(silent, 'listening')
  const quiet = await readWith(ntp, { server_port: silent.address().port })
  assert.match(quiet.reason, /no answer within a second/)
  const closed = createSocket('udp4').bind(0, '127.0.0.1')
  await once(closed, 'listening')
  const none = closed.address().port
  closed.close()
  assert.notEqual(none, port)
  assert.equal((await readWith(ntp, { server_port: none })).outcome, 'failed')
})

test('a server elsewhere is asked only where somebody vouches for it', async t => {
  for (const server of ['192.0.2.1', 'localhost'])
    await assert.rejects(readWith(ntp, { server }), /not a loopback address/)
  const { port } = await serve(t, {})
  const { outcome } = await readWith(ntp, { server: 'localhost', server_is_local: true, server_port: port })
  assert.equal(outcome, 'success')
})
