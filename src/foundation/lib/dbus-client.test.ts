import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type DBusServerOptions, dbusServer, encodeAnswer } from '../../../test/helpers/dbus-server.ts'
import { until } from '../../../test/helpers/program.ts'
import { DBusClient, DBusError, type DBusRequest, parseDBusAddress } from './dbus-client.ts'

const request: DBusRequest = { destination: 'a.b', path: '/a', interface: 'a.b', member: 'M', returns: 's' }
const echo = { signature: 's', body: ['hello'] }
const soon = () => AbortSignal.timeout(20_000)

async function talk(t: TestContext, options: DBusServerOptions, isBus = true) {
  const server = await dbusServer(t, options)
  const client = new DBusClient({ isBus, sockets: () => [server.path] })
  t.after(() => client.close())
  return { server, client }
}

test('many calls share one connection, and answers find their calls in any order', async t => {
  const held: (() => void)[] = []
  const { server, client } = await talk(t, {
    answer(call, socket) {
      held.push(() => socket.write(encodeAnswer(call.serial, { signature: 's', body: call.body })))
      if (held.length === 100) for (const send of held.reverse()) send()
      return undefined
    },
  })
  const ask = (i: number) => client.call({ ...request, signature: 's', body: [String(i)] }, soon())
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => ask(i)))
  assert.deepEqual(
    answers,
    Array.from({ length: 100 }, (_, i) => [String(i)]),
  )
  assert.deepEqual(server.connections(), { open: 1, all: 1 })
})

test('an answer in single bytes, between signals and answers to nobody, is one', async t => {
  const { client } = await talk(t, {
    answer(call, socket) {
      const signal = encodeAnswer(0, echo)
      signal[1] = 4
      const all = Buffer.concat([signal, encodeAnswer(999, echo), encodeAnswer(call.serial, echo)])
      const send = (at: number) => {
        if (at < all.length) socket.write(all.subarray(at, at + 1), () => send(at + 1))
      }
      send(0)
      return undefined
    },
  })
  assert.deepEqual(await client.call(request, soon()), ['hello'])
})

test("an error is the peer's answer, and the connection stays", async t => {
  const { server, client } = await talk(t, { answer: () => ({ error: 'a.b.No', text: 'no\nway' }) }, false)
  for (let i = 0; i < 2; i++)
    await assert.rejects(client.call(request, soon()), error => {
      assert.ok(error instanceof DBusError)
      assert.equal(error.errorName, 'a.b.No')
      assert.equal(error.message, 'no?way (a.b.No)')
      return true
    })
  assert.equal(server.connections().all, 1)
})

test('a mistake of the caller costs the call alone', async t => {
  const { server, client } = await talk(t, { answer: () => echo })
  await assert.rejects(client.call({ ...request, path: 'nowhere' }, soon()), /cannot write/)
  assert.deepEqual(await client.call(request, soon()), ['hello'])
  assert.equal(server.connections().all, 1)
})

test('who does not answer in time is left, and asked anew over another connection', async t => {
  let isSilent = true
  const { server, client } = await talk(t, { answer: () => (isSilent ? undefined : echo) })
  for (let i = 0; i < 5; i++)
    await assert.rejects(client.call(request, AbortSignal.timeout(20)), /no answer in time/)
  isSilent = false
  assert.deepEqual(await client.call(request, soon()), ['hello'])
  await until('one connection is left', 20_000, () => server.connections().open === 1)
  client.close()
  await until('none is left', 20_000, () => server.connections().open === 0)
  assert.deepEqual(await client.call(request, soon()), ['hello'])
  await assert.rejects(client.call(request, AbortSignal.abort()), /timed out before it was sent/)
})

test('a peer that does not talk as it should is an error in words, and leaves nothing open', async t => {
  const check = async (options: Partial<DBusServerOptions>, want: RegExp, within = soon) => {
    const { server, client } = await talk(t, { answer: () => echo, ...options })
    const all = [1, 2, 3].map(() => client.call(request, within()))
    for (const { reason } of (await Promise.allSettled(all)) as PromiseRejectedResult[])
      assert.match(String(reason?.message), want)
    await until('nothing is open', 20_000, () => server.connections().open === 0)
    assert.ok(server.connections().all <= 1)
  }
  const silence = [/no answer in time/, () => AbortSignal.timeout(200)] as const
  const raw = (edit: (bytes: Buffer) => Buffer) => (call: { serial: number }) =>
    edit(encodeAnswer(call.serial, echo))
  const set = (at: number, ...values: number[]) =>
    raw(bytes => {
      bytes.set(values, at)
      return bytes
    })
  await check({ auth: undefined }, ...silence)
  await check({ auth: 'OK' }, ...silence)
  await check({ auth: 'REJECTED EXTERNAL\r\n' }, /answered "REJECTED EXTERNAL" to AUTH/)
  await check({ auth: '\x1b[2J\r\n' }, /answered "\?\[2J"/)
  await check({ auth: 'x'.repeat(5000) }, /answered "x{60}"/)
  await check({ auth: 'OK 1\r\nOK 2\r\n' }, /to AUTH/)
  await check({ answer: set(0, 0x41) }, /no byte order/)
  await check({ answer: set(3, 9) }, /version 9/)
  await check({ answer: set(4, 0xff, 0xff, 0xff, 0x7f) }, /the limit is 16777216/)
  await check({ answer: set(12, 0xff, 0xff, 0xff, 0xff) }, /the limit is 16777216/)
  await check({ answer: set(8, 0, 0, 0, 0) }, /no serial number/)
  let answers = 0
  await check(
    { answer: call => (answers++ === 0 ? encodeAnswer(call.serial, echo).subarray(0, -1) : undefined) },
    ...silence,
  )
  await check(
    { answer: raw(bytes => Buffer.concat([Buffer.from('garbage'.repeat(9)), bytes])) },
    /no byte order/,
  )
  await check({ answer: () => ({ signature: 'u', body: [1] }) }, /is of type "u" where "s" was expected/)
  await check({ answer: () => ({ signature: '', body: [] }) }, /is of type ""/)
  await check({ answer: (_call, socket: Socket) => void socket.destroy() }, /the peer closed the connection/)
  await check({ answer: (_call, socket: Socket) => void socket.end() }, /the peer closed the connection/)
  const noise = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 2654435761) >>> 13))
  await check({ answer: () => noise }, /no byte order/)
})

test('no more than 1024 calls are already waiting at once', async t => {
  const { client } = await talk(t, { answer: () => undefined })
  const stop = new AbortController()
  await client.connect(stop.signal)
  const calls = Array.from({ length: 1025 }, () => client.call(request, stop.signal).catch(String))
  assert.match(String(await calls[1024]), /1024 calls are already waiting/)
  stop.abort()
  assert.match(String(await calls[0]), /no answer in time/)
})

test('the first socket that somebody answers at is used', async t => {
  const server = await dbusServer(t, { answer: () => echo })
  const client = new DBusClient({ isBus: true, sockets: () => ['/nowhere/bus', server.path] })
  t.after(() => client.close())
  assert.deepEqual(await client.call(request, soon()), ['hello'])
  const lost = new DBusClient({ isBus: true, sockets: () => ['/nowhere/a', '/nowhere/b'] })
  await assert.rejects(lost.connect(soon()), /cannot connect to D-Bus: .*\/nowhere\/a; .*\/nowhere\/b$/)
})

test('a socket of the abstract namespace is one', async t => {
  const name = `svc-dbus-test-${process.pid}`
  await dbusServer(t, { answer: () => echo, path: `\0${name}` })
  const client = new DBusClient({ isBus: true, sockets: () => parseDBusAddress(`unix:abstract=${name}`) })
  t.after(() => client.close())
  assert.deepEqual(await client.call(request, soon()), ['hello'])
})

test('an address names its Unix sockets', () => {
  assert.deepEqual(parseDBusAddress('unix:path=/run/bus'), ['/run/bus'])
  assert.deepEqual(parseDBusAddress('tcp:host=h;unix:path=/a%20%c3%a4,guid=1;unix:abstract=b'), [
    '/a ä',
    '\0b',
  ])
  for (const address of ['', 'unix:', 'tcp:host=localhost', 'unix:tmpdir=/tmp'])
    assert.throws(() => parseDBusAddress(address), /not a Unix socket address/)
})
