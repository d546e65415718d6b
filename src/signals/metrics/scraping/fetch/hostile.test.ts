import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  answer,
  type Behaviour,
  drip,
  gzipBomb,
  pour,
  startHostileTarget,
} from '../../../../../test/helpers/hostile-target.ts'
import { freePort } from '../../../../../test/helpers/program.ts'
import { noAccess } from '../scrape-job.ts'
import { pageBuffers } from './page-buffers.ts'
import { FetchError, TargetClient, type TargetClientOptions } from './target-client.ts'

const bodyBytes = 1024 * 1024
const ok = 'HTTP/1.1 200 OK\r\n'

async function target(t: TestContext, behaviour: Behaviour, greet?: (socket: Socket) => void) {
  const found = await startHostileTarget(behaviour, greet)
  t.after(() => found.close())
  return found
}

async function fault(url: string, options: Partial<TargetClientOptions> = {}, timeoutMs = 20_000) {
  const client = new TargetClient({
    url,
    access: noAccess,
    compression: 'always',
    bodyBytes,
    owner: 'job x',
    ...options,
  })
  const error = await client.ask({ timeoutMs }).then(
    () => new Error('it was fetched'),
    (error: unknown) => error,
  )
  client.close()
  assert.ok(error instanceof FetchError, String(error))
  assert.equal(pageBuffers.leasedBytes, 0, 'memory is still lent')
  return `${error.type}: ${error.message.replace(/:\d{4,5}\//g, ':PORT/')}`
}

/** What a target ends in; within seconds where it is not told otherwise. */
function check(name: string, behaviour: Behaviour, want: RegExp, timeoutMs?: number): void {
  test(name, async t => {
    const { url, open } = await target(t, behaviour)
    assert.match(await fault(url, {}, timeoutMs), want)
    for (const deadline = performance.now() + 20_000; open.size > 0; ) {
      assert.ok(performance.now() < deadline, 'the connection is still there')
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  })
}

check(
  'an endless body ends at the limit',
  socket => {
    socket.write(`${ok}\r\n`)
    pour(socket, Buffer.alloc(64 * 1024, 'a 1\n'))
  },
  /^body_too_large: cannot fetch http:\/\/127\.0\.0\.1:PORT\/metrics: the body has more than 1048576 bytes; body_size_limit of job x is/,
)
check(
  'an endless body in chunks ends at the limit',
  socket => {
    socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n`)
    pour(socket, `1000\r\n${'a'.repeat(4096)}\r\n`)
  },
  /^body_too_large:/,
)
check(
  'a body whose length is beyond the limit is not begun',
  socket => socket.write(`${ok}Content-Length: 99999999\r\n\r\na 1\n`),
  /^body_too_large: .* the body has 99999999 bytes/,
)
check(
  'a chunk whose size is beyond the limit is not begun',
  socket => socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\nfffffff\r\na 1\n`),
  /^body_too_large:/,
)
check(
  'a chunk of no size',
  socket => socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`),
  /^broken: .*chunk size is not a number/,
)
check(
  'a chunk of more than all bytes there are',
  socket => socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n${'f'.repeat(20)}\r\n`),
  /^broken: .*chunk size is not a number/,
)
check(
  'a line between chunks that does not end',
  socket => {
    socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n1;`)
    pour(socket, 'x'.repeat(1000))
  },
  /^broken: .*unterminated line/,
)
check(
  'trailers without end',
  socket => {
    socket.write(`${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n`)
    pour(socket, 'a: b\r\n'.repeat(100))
  },
  /^broken: .*unterminated trailer/,
)
check(
  'a body that comes byte by byte ends with the time',
  socket => {
    socket.write(`${ok}Content-Length: 1000\r\n\r\n`)
    drip(socket, 'a')
  },
  /^timeout: .* timed out after 3000 ms while reading the body \([1-9]\d* bytes so far\)/,
  3000,
)
check(
  'a head that comes byte by byte ends with the time',
  socket => drip(socket, 'HTTP/1.1 200 OK'),
  /^timeout: .*while reading the response headers/,
  3000,
)
check('no answer', () => undefined, /^timeout: .* timed out after 4000 ms without a response$/, 4000)
check(
  'a head of 1 MB',
  socket => socket.write(`${ok}X: ${'x'.repeat(1024 * 1024)}\r\n\r\n`),
  /^broken: .*longer than 32768 bytes/,
)
check(
  '100,000 headers',
  socket => socket.write(`${ok}${'a: b\r\n'.repeat(100_000)}\r\n`),
  /^broken: .*longer than 32768/,
)
check(
  'interim answers without end',
  socket => pour(socket, 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)),
  /^broken: .*only HTTP 100, and no final response/,
)
check(
  'another protocol is switched to',
  socket => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  /^broken: .*HTTP 101/,
)
check(
  'a body shorter than its length',
  socket => socket.end(`${ok}Content-Length: 100\r\n\r\na 1\n`),
  /^broken: .* the response was cut off after 4 bytes of the body of 100$/,
)
check(
  'chunks without their end',
  socket => socket.end(`${ok}Transfer-Encoding: chunked\r\n\r\n4\r\na 1\n\r\n`),
  /^broken: .*cut off after 4 bytes/,
)
check(
  'two lengths',
  socket => socket.end(`${ok}Content-Length: 4\r\nContent-Length: 5\r\n\r\na 1\n`),
  /^broken: .*Content-Length/,
)
check('no length', socket => socket.end(`${ok}Content-Length: -4\r\n\r\na 1\n`), /^broken: .*Content-Length/)
check(
  'a reset in the middle of the body',
  socket => {
    socket.write(`${ok}Content-Length: 100\r\n\r\na 1\n`)
    setTimeout(() => socket.resetAndDestroy(), 20)
  },
  /^broken: .*(ECONNRESET|cut off)/,
)
check(
  'a connection that is closed without an answer',
  socket => socket.end(),
  /^broken: .*without a response/,
)
check(
  'a connection that is closed in the head',
  socket => socket.end('HTTP/1.1 200'),
  /^broken: .*in its headers/,
)
check(
  'a server of HTTP/2',
  socket => socket.write(Buffer.from('000006040000000000000300000064', 'hex')),
  /^broken: .*only HTTP\/2/,
)
check(
  'a server of TLS',
  socket => socket.end(Buffer.from('15030100020246', 'hex')),
  /^broken: .*set scheme to https/,
)
check(
  'a server of another protocol',
  socket => socket.end('-ERR unknown command\u0007\r\n'),
  /^broken: .*not an HTTP\/1\.1 response: "-ERR unknown command"/,
)
check(
  'an unknown version',
  socket => socket.end('HTTP/3.0 200 OK\r\n\r\n'),
  /^broken: .*not an HTTP\/1\.1 response: "HTTP\/3\.0 200 OK"/,
)
check(
  'a gzip bomb ends at the ratio',
  socket => socket.write(answer(gzipBomb(100_000), { 'Content-Encoding': 'gzip' })),
  /^(bad_encoding: .*more than 100 times|body_too_large: .*decompressed)/,
)
check(
  'gzip that is none',
  socket => socket.write(answer('a 1\n', { 'Content-Encoding': 'gzip' })),
  /^bad_encoding: .*cannot decompress gzip/,
)
check(
  'gzip that is cut',
  socket =>
    socket.write(answer(gzipSync('a 1\n'.repeat(1000)).subarray(0, 20), { 'Content-Encoding': 'gzip' })),
  /^bad_encoding: .*cannot decompress gzip/,
)
for (const encoding of ['deflate', 'br', 'zstd', 'gzip, gzip'])
  check(
    `a body of ${encoding}`,
    socket => socket.write(answer('x', { 'Content-Encoding': encoding })),
    new RegExp(`^bad_encoding: .*compressed with "${encoding}"`),
  )
check(
  'a body that is transferred in another way',
  socket => socket.write(`${ok}Transfer-Encoding: gzip, chunked\r\n\r\n`),
  /^broken: .*Transfer-Encoding/,
)
check(
  'redirects in a circle',
  socket => socket.write(answer('', { Location: '/metrics' }, '302 Found')),
  /^redirect: .*more than 10 redirects/,
)
check(
  'a redirect to a file',
  socket => socket.write(answer('', { Location: 'file:///etc/shadow' }, '302 Found')),
  /^redirect: .*\(HTTP 302\): scheme file is not supported/,
)
check(
  'a redirect to a socket',
  socket => socket.write(answer('', { Location: 'unix:/run/docker.sock:/info' }, '302 Found')),
  /^redirect: .*scheme unix is not supported/,
)
check(
  'a refusal without end',
  socket => {
    socket.write(
      'HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\n\r\nout of luck\u001b[31m\n',
    )
    pour(socket, Buffer.alloc(64 * 1024, 'a'))
  },
  /^http_status: .*: HTTP 500 Internal Server Error \("out of luck \[31m"\)$/,
)

test('a bomb of 10 GB whose ratio passes for a page ends at the limit', async t => {
  const { url } = await target(t, socket => {
    socket.write(`${ok}Content-Encoding: gzip\r\n\r\n`)
    socket.end(gzipBomb(32 * 1024 * 1024))
  })
  const before = process.memoryUsage().rss
  const said = await fault(url, { bodyBytes: 64 * 1024 * 1024 })
  assert.match(said, /^body_too_large: .*decompressed/)
  assert.ok(process.memoryUsage().rss - before < 400 * 1024 * 1024)
})

test('a server that speaks first is no target', async t => {
  const { url } = await target(
    t,
    () => undefined,
    socket => socket.write('SSH-2.0-OpenSSH_9.2\r\n'),
  )
  assert.match(await fault(url), /^broken: .*not an HTTP\/1\.1 response: "SSH-2\.0-OpenSSH_9\.2"/)
})

test('a port that nobody listens on', async () => {
  assert.match(await fault(`http://127.0.0.1:${await freePort()}/metrics`), /^connect: .*ECONNREFUSED/)
})

test('a name that nobody has', async () => {
  assert.match(await fault('http://no-such-name.invalid/metrics'), /^(dns|timeout): .*no-such-name\.invalid/)
})

test('an address that does not answer ends with the time', async () => {
  // Of the documentation (RFC 5737): no route leads there, or nobody answers.
  assert.match(await fault('http://192.0.2.1:9/metrics', {}, 300), /^(timeout|connect): /)
})

test('who stops does not wait', async t => {
  const { url, open } = await target(t, () => undefined)
  const client = new TargetClient({ url, access: noAccess, compression: 'never', bodyBytes, owner: 'job x' })
  const stop = new AbortController()
  const fetched = client.ask({ timeoutMs: 60_000, stop: stop.signal })
  while (open.size === 0) await new Promise(resolve => setTimeout(resolve, 5))
  stop.abort()
  await assert.rejects(fetched, { name: 'FetchError', type: 'stopped' })
  await assert.rejects(client.ask({ timeoutMs: 60_000, stop: stop.signal }), { type: 'stopped' })
  client.close()
  await assert.rejects(client.ask({ timeoutMs: 60_000 }), { type: 'stopped' })
})

test('pages without end leave room for those of others', async t => {
  const endless = await target(t, socket => {
    socket.write(`${ok}Content-Length: 99000000\r\n\r\n`)
    pour(socket, Buffer.alloc(64 * 1024, 'a 1\n'))
  })
  const honest = await target(t, socket => socket.write(answer('a 1\n')))
  const stop = new AbortController()
  const hogs = Array.from({ length: 4 }, () =>
    new TargetClient({
      url: endless.url,
      access: noAccess,
      compression: 'never',
      bodyBytes: 98e6,
      owner: 'job x',
    })
      .ask({ timeoutMs: 60_000, stop: stop.signal })
      .catch((error: FetchError) => error.type),
  )
  const client = new TargetClient({
    url: honest.url,
    access: noAccess,
    compression: 'never',
    bodyBytes,
    owner: 'job y',
  })
  t.after(() => client.close())
  const { body, release } = await client.ask({ timeoutMs: 60_000 })
  assert.equal(String(body), 'a 1\n')
  release()
  stop.abort()
  for (const type of await Promise.all(hogs)) assert.match(String(type), /^(body_too_large|memory|stopped)$/)
  assert.equal(pageBuffers.leasedBytes, 0)
})
