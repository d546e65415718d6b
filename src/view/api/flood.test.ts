import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { Agent } from 'node:http'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ask, open, readAll, serve, settings } from '../../../test/helpers/api-server.ts'
import { until } from '../../../test/helpers/program.ts'

const reloads = 1000

function sockets(t: TestContext): Socket[] {
  const all: Socket[] = []
  t.after(() => {
    for (const socket of all) socket.destroy()
  })
  return all
}

test('connections that wait make room for new ones, the longest waiting first', async t => {
  const { api } = await serve(t, {}, { limits: { connections: 2 } })
  const held = sockets(t)
  const request = 'GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n'
  const answered = (socket: Socket) => {
    const data = new Promise<Buffer>(resolve => socket.once('data', resolve))
    socket.write(request)
    return data
  }
  for (let i = 0; i < 2; i++) {
    held.push(await open(api.port))
    await answered(held[i]!)
  }
  // Used again: the second has waited longer now.
  await answered(held[0]!)
  const ended = readAll(held[1]!)
  assert.equal((await ask(api.port, '/healthz')).status, 200)
  await ended
  assert.match(String(await answered(held[0]!)), /^HTTP\/1.1 200 OK/)
  assert.equal(api.stats().dropped_connections, 1)
})

test('a connection whose answer took its time waits like others afterwards', async t => {
  const { api, waiting } = await serve(t, { debug: true }, { limits: { connections: 1 } })
  const held = await open(api.port)
  const ended = readAll(held)
  const answered = new Promise(resolve => held.once('data', resolve))
  held.write('GET /debug/take HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await waiting.come(1)
  waiting.release()
  await answered
  assert.equal((await ask(api.port, '/healthz')).status, 200)
  assert.match(await ended, /^HTTP\/1.1 200 OK/)
})

test('more connections than the bound are closed while all others are busy, which go on', async t => {
  const { api, waiting } = await serve(t, { debug: true }, { limits: { connections: 2 } })
  const held = [ask(api.port, '/debug/take'), ask(api.port, '/debug/take')]
  await waiting.come(2)
  for (let i = 0; i < 5; i++) await assert.rejects(ask(api.port, '/healthz'))
  assert.equal(api.stats().dropped_connections, 5)
  waiting.release()
  for (const { status } of await Promise.all(held)) assert.equal(status, 200)
  assert.equal((await ask(api.port, '/healthz')).status, 200)
})

test('answers that nobody reads make room where nothing else does', async t => {
  const { api } = await serve(t, {}, { limits: { connections: 2 } })
  const held = sockets(t)
  for (let i = 0; i < 2; i++) {
    held.push(await open(api.port))
    held[i]!.pause()
    held[i]!.write('GET /large HTTP/1.1\r\nHost: h\r\n\r\n')
  }
  await until('both are answered', 20_000, () => api.stats().requests.get(200) === 2)
  assert.equal((await ask(api.port, '/healthz')).status, 200)
  assert.equal(api.stats().dropped_connections, 1)
})

test('a client that asks on and does not read its answers is closed before they fill the memory', async t => {
  const { api } = await serve(t)
  const of = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: h\r\n${more}\r\n`
  const refuse = `${of('/nothing', 'Expect: 100-continue\r\nContent-Length: 1\r\n')}x`
  // Also where what comes behind is not answered any more.
  for (const [start, most] of [
    ['', 2 + (64 << 10) / 10_000],
    [refuse, 1],
  ] as const) {
    const before = { ...api.stats().refused }
    const answers = [...api.stats().requests.values()].reduce((sum, count) => sum + count, 0)
    const socket = await open(api.port)
    const text = readAll(socket)
    socket.pause()
    socket.write(start + of('/page').repeat(1000))
    await until('it is closed', 20_000, () => api.stats().connections === 0)
    socket.resume()
    await text
    // What came with them was not parsed to its end.
    const refused = api.stats().refused.pipelined - before.pipelined
    assert.ok(refused > 0 && refused < 64, `${refused} refused`)
    const made = [...api.stats().requests.values()].reduce((sum, count) => sum + count, 0) - answers
    assert.ok(made >= 1 && made <= most, `${made} answers`)
  }
  assert.equal((await ask(api.port, '/page')).status, 200)
})

test('clients that never finish a request keep nobody out, and are answered 408 in the end', async t => {
  const limits = { connections: 64, headersMs: 6000, requestMs: 6000 }
  const { api } = await serve(t, {}, { limits })
  const slow = sockets(t)
  const heads = ['', 'G', 'GET /healthz HTTP/1.1\r\n', 'GET /healthz HTTP/1.1\r\nHost: h\r\nX: ']
  for (let i = 0; i < 64; i++) {
    slow.push(await open(api.port))
    slow[i]!.write(heads[i % heads.length]!)
  }
  const ended = slow.map(readAll)
  await until('all are there', 20_000, () => api.stats().connections === 64)
  for (let i = 0; i < 32; i++) assert.equal((await ask(api.port, '/healthz')).status, 200)
  // A byte now and then does not help.
  const dripping = setInterval(() => {
    for (const socket of slow) socket.write('x')
  }, 100)
  t.after(() => clearInterval(dripping))
  const texts = await Promise.all(ended)
  assert.ok(texts.some(text => text.startsWith('HTTP/1.1 408 ')))
  await until('none is left', 20_000, () => api.stats().connections === 0)
})

test('a flood of connections does not keep the probes out', async t => {
  const { api } = await serve(t, {}, { limits: { connections: 16 } })
  let going = true
  let opened = 0
  const flood = async () => {
    while (going) {
      const socket = await open(api.port)
      opened++
      if (opened % 2 === 0) socket.destroy()
      else t.after(() => socket.destroy())
    }
  }
  const floods = [flood(), flood(), flood(), flood()]
  let answered = 0
  for (let i = 0; i < 200; i++) {
    answered += await ask(api.port, '/healthz').then(
      ({ status }) => (status === 200 ? 1 : 0),
      () => 0,
    )
  }
  going = false
  await Promise.all(floods)
  assert.ok(opened > 100)
  // Each needs its place for one request only; nearly all have it for that long.
  assert.ok(answered > 100, `${answered} of 200`)
  assert.equal((await ask(api.port, '/healthz')).status, 200)
  assert.ok(api.stats().connections <= 16)
})

test('headers without end are cut off, whoever sends them', async t => {
  const { api } = await serve(t)
  const line = `X: ${'x'.repeat(1000)}\r\n`
  const texts = await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const socket = await open(api.port)
      const text = readAll(socket)
      socket.write('GET /healthz HTTP/1.1\r\nHost: h\r\n')
      socket.write(i % 2 === 0 ? line.repeat(100) : 'A:b\r\n'.repeat(20_000))
      return text
    }),
  )
  for (const text of texts) assert.match(text, /^HTTP\/1.1 431 /)
  assert.equal(api.stats().requests.get(431), 50)
  assert.equal((await ask(api.port, '/healthz')).status, 200)
})

test(`${reloads} changes of settings under load fail no request and leave nothing behind`, async t => {
  const auth = { enabled: true, bearer_token: 'old', bearer_tokens: ['new'], exempt: [] }
  const { api } = await serve(t, { auth })
  const kept = new Agent({ keepAlive: true, maxSockets: 8 })
  t.after(() => kept.destroy())
  let going = true
  let answered = 0
  const worker = async (token: string, path: string) => {
    while (going) {
      const headers = { authorization: `Bearer ${token}` }
      const { status } = await ask(api.port, path, { agent: kept, headers })
      assert.equal(status, 200)
      answered++
    }
  }
  const workers = ['/status', '/healthz', '/metrics', '/echo'].flatMap(path => [
    worker('old', path),
    worker('new', path),
  ])
  const descriptors = () => readdirSync('/proc/self/fd').length
  await until('all connections are made', 20_000, () => answered > 100)
  const before = descriptors()
  for (let i = 0; i < reloads; i++) {
    const change = api.prepare({
      ...settings,
      auth: {
        ...auth,
        bearer_token: i % 2 ? 'old' : 'new',
        bearer_tokens: i % 2 ? ['new'] : ['other', 'old'],
      },
      debug: i % 3 === 0,
      admin: { allow_remote: i % 5 === 0 },
      rate_limit: { enabled: i % 2 === 0, requests_per_second: 100_000 + (i % 7) },
      cors: { enabled: i % 4 === 0, allowed_origins: [`http://a${i % 9}.example`] },
    })
    if (i % 10 === 9) change.abort()
    else change.commit()
    await new Promise(resolve => setImmediate(resolve))
  }
  assert.ok(descriptors() <= before + 1, `${before} → ${descriptors()}`)
  going = false
  await Promise.all(workers)
  assert.deepEqual([...api.stats().requests.keys()], [200])
  assert.equal(api.stats().dropped_connections, 0)
})
