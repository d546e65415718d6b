import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { freePort } from '../../../test/helpers/program.ts'
import { MetadataError, MetadataFields, MetadataService, metadataText } from './metadata-service.ts'

/** Answers each connection with these bytes, and keeps it open. */
async function listen(t: TestContext, bytes: string, host = '127.0.0.1') {
  const heard: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    socket.on('data', data => heard.push(data.toString('latin1')))
    socket.once('data', () => socket.write(bytes))
  })
  await new Promise<void>(resolve => server.listen(0, host, resolve))
  t.after(
    () =>
      new Promise(resolve => {
        server.close(resolve)
        for (const socket of sockets) socket.destroy()
      }),
  )
  return { port: (server.address() as AddressInfo).port, heard, sockets }
}

function service(t: TestContext, endpoint: string, timeoutMs = 30_000): MetadataService {
  const made = new MetadataService({ endpoint, timeoutMs })
  t.after(() => made.close())
  return made
}

const ok = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

test('a question goes below the path of the endpoint, with its headers and none of a proxy', async t => {
  const { port, heard } = await listen(t, ok(' line \n'))
  const asked = service(t, `http://user:secret@127.0.0.1:${port}/base/`)
  assert.equal(await asked.text({ path: '/a/b?c=d', headers: { metadata: 'true' } }), 'line')
  assert.match(heard[0]!, /^GET \/base\/a\/b\?c=d HTTP\/1\.1\r\n/)
  assert.match(heard[0]!, /\r\nmetadata: true\r\n/)
  assert.doesNotMatch(heard[0]!, /forwarded|via|authorization|secret/i)
})

test('an endpoint may be an address of IPv6', async t => {
  const { port } = await listen(t, ok('here'), '::1')
  assert.equal(await service(t, `http://[::1]:${port}`).text({ path: '/' }), 'here')
})

test('an endpoint that is no plain HTTP is refused with its hint, and nothing of it is shown but its origin', async t => {
  const check = async (endpoint: string) => {
    const error: unknown = await service(t, endpoint)
      .text({ path: '/' })
      .catch(error => error)
    assert.ok(error instanceof MetadataError)
    assert.match(error.hint, /begins with http:\/\//)
    assert.doesNotMatch(error.message, /secret/)
  }
  await check('https://user:secret@127.0.0.1/secret')
  await check('secret')
  await check('')
})

test('a token is what a header can carry', async t => {
  const check = async (body: string, want: string | RegExp) => {
    const { port, heard } = await listen(t, ok(body))
    const token = service(t, `http://127.0.0.1:${port}`).token({ path: '/token' })
    if (typeof want === 'string') assert.equal(await token, want)
    else await assert.rejects(token, want)
    assert.match(heard[0]!, /^PUT \/token HTTP\/1\.1\r\n(.+\r\n)*content-length: 0\r\n/i)
  }
  await check('AQAEAJ-_+/=.~\n', 'AQAEAJ-_+/=.~')
  await check('', /is not a token/)
  await check('two words', /is not a token/)
  await check('two\r\nlines', /is not a token/)
  await check('a'.repeat(1025), /is not a token/)
})

test('text that is good to have is empty when it cannot be had, and leaves time for the rest', async t => {
  const { port, sockets } = await listen(t, '')
  const slow = service(t, `http://127.0.0.1:${port}`, 600)
  assert.equal(await slow.optionalText({ path: '/' }), '')
  // The rest of the time is there, and it ends too.
  await assert.rejects(slow.text({ path: '/' }), /no complete answer within 600 ms/)
  await gone(sockets)
  const { port: refusing } = await listen(t, 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
  assert.equal(await service(t, `http://127.0.0.1:${refusing}`).optionalText({ path: '/' }), '')
})

test('a thread that was busy for longer than the time does not cost the answer', async t => {
  const { port } = await listen(t, ok('here'))
  const asked = service(t, `http://127.0.0.1:${port}`, 200)
  const answer = asked.text({ path: '/' })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  assert.equal(await answer, 'here')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  assert.equal(await asked.text({ path: '/' }), 'here')
})

test('what is no HTTP, and a head without an end, end in a reason', async t => {
  const check = async (bytes: string, want: RegExp) => {
    const { port, sockets } = await listen(t, bytes)
    await assert.rejects(service(t, `http://127.0.0.1:${port}`).text({ path: '/' }), want)
    await gone(sockets)
  }
  await check('SSH-2.0-OpenSSH_9.2\r\n', /cannot read http:\/\/127\.0\.0\.1:\d+\/: /)
  await check(`HTTP/1.1 200 OK\r\nX: ${'a'.repeat(100_000)}`, /cannot read/)
  await check('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n', /cannot read/)
  await check('HTTP/1.1 204 No Content\r\n\r\n', /HTTP 204/)
})

test('closing ends what is under way, and refuses what comes after', async t => {
  const { port, sockets } = await listen(t, '')
  const asked = service(t, `http://127.0.0.1:${port}`)
  const questions = Array.from({ length: 8 }, (_, i) => asked.text({ path: `/${i}` }).catch(error => error))
  asked.close()
  for (const error of await Promise.all(questions)) assert.equal((error as MetadataError).fault, 'closed')
  await assert.rejects(asked.text({ path: '/' }), { fault: 'closed' })
  await gone(sockets)
})

test('a port where nobody listens is no connection', async t => {
  await assert.rejects(service(t, `http://127.0.0.1:${await freePort()}`).text({ path: '/' }), {
    fault: 'connect',
    message: /ECONNREFUSED/,
  })
})

test('proxies of the environment are not used', async t => {
  const { port } = await listen(t, ok('direct'))
  let proxied = 0
  const proxy = createHttpServer((_request, response) => {
    proxied++
    response.end('proxied')
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  t.after(() => new Promise(resolve => proxy.close(resolve)))
  const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const script = `
    const { MetadataService } = await import(${JSON.stringify(join(import.meta.dirname, 'metadata-service.ts'))})
    const asked = new MetadataService({ endpoint: 'http://127.0.0.1:${port}', timeoutMs: 30000 })
    console.log(await asked.text({ path: '/' }))
    asked.close()`
  const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy', 'HTTPS_PROXY']
  const env = { ...process.env, NODE_USE_ENV_PROXY: '1', NO_PROXY: '', no_proxy: '' }
  for (const name of names) Object.assign(env, { [name]: address })
  const printed = await new Promise<string>((resolve, reject) =>
    execFile(
      process.execPath,
      ['--no-warnings', '--input-type=module', '-e', script],
      { env },
      (error, stdout) => (error ? reject(error) : resolve(stdout)),
    ),
  )
  assert.equal(printed, 'direct\n')
  assert.equal(proxied, 0)
})

test('a JSON answer may hold long texts, and not many thousand values', async t => {
  const check = async (body: string, want: RegExp | string) => {
    const { port } = await listen(t, ok(body))
    const fields = service(t, `http://127.0.0.1:${port}`).fields({ path: '/' })
    if (typeof want === 'string') assert.equal((await fields).text('a'), want)
    else await assert.rejects(fields, want)
  }
  const script = `\\"[{,`.repeat(20_000)
  await check(JSON.stringify({ script, a: 'x' }), 'x')
  await check(JSON.stringify({ a: 'x', list: Array(4000).fill(0) }), 'x')
  await check(JSON.stringify({ a: 'x', list: Array(5000).fill(0) }), /more than 4096 parts/)
  await check('{"a":'.repeat(5000), /more than 4096 parts/)
  await check('"a\\', /not JSON/)
})

test('fields of another type are not known', () => {
  const fields = new MetadataFields(
    JSON.parse(
      '{"a":"x","b":7,"c":1e300,"d":true,"e":null,"f":{"g":"y"},"h":["z"],"i":"two\\nlines","__proto__":{"j":1}}',
    ),
  )
  const check = (name: string, want: string) => assert.equal(fields.text(name), want, name)
  check('a', 'x')
  check('b', '7')
  for (const name of ['c', 'd', 'e', 'f', 'h', 'i', 'j', 'toString', 'constructor', '']) check(name, '')
  assert.equal(fields.inner('f').text('g'), 'y')
  for (const name of ['a', 'e', 'h', 'none']) assert.equal(fields.inner(name).text('g'), '', name)
  for (const value of [undefined, null, 7, 'text', [], [[]], [1, 2]])
    assert.equal(new MetadataFields(value).text('length'), '')
})

test('a text is one line of Unicode, and no longer than names are', () => {
  const check = (value: unknown, want: string) => assert.equal(metadataText(value), want)
  check('Größe 7', 'Größe 7')
  check('a\u0000b', '')
  check('a\u009bb', '')
  check('\ud800', '')
  check('a'.repeat(1024), 'a'.repeat(1024))
  check('a'.repeat(1025), '')
  check(17, '')
})

async function gone(sockets: ReadonlySet<Socket>): Promise<void> {
  const deadline = Date.now() + 20_000
  while (sockets.size > 0) {
    assert.ok(Date.now() < deadline, `${sockets.size} connections are left`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
