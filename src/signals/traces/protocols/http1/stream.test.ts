import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { kernelOperation } from '../../../../../test/helpers/kernel-operation.ts'
import { soak } from '../../../../../test/helpers/soak.ts'
import { type SessionOptions, StreamSession } from '../../../../../test/helpers/stream-session.ts'
import { http1 } from '../http1.ts'

const get = 'GET /users/42?q=1 HTTP/1.1\r\nHost: shop.example:8080\r\nUser-Agent: curl/8.5\r\n\r\n'
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const session = (options: SessionOptions = {}): StreamSession =>
  new StreamSession(http1, { server: true, serverPort: 8080, ...options })

/** Who says what: `>` the client, `<` the server. */
type Talk = readonly (readonly ['>' | '<', string])[]

function play(talk: Talk, options: SessionOptions = {}, bytewise = false): StreamSession {
  const one = session(options)
  for (const [who, text] of talk)
    for (const part of bytewise ? text : [text]) who === '>' ? one.client(part) : one.serverSays(part)
  return one
}

/** Name, status, error and the sizes of both bodies of each operation. */
function seen(one: StreamSession): string[] {
  return one.ended.map(({ name, error, attributes: a }) =>
    [
      name,
      a['http.response.status_code'] ?? '-',
      error || 'fine',
      a['http.request.body.size'],
      a['http.response.body.size'] ?? '-',
    ].join(' '),
  )
}

/** The same whether the bytes come in these calls or one by one; then the connection ends. */
function check(talk: Talk, want: readonly string[], options: SessionOptions = {}): void {
  for (const bytewise of [false, true]) {
    const one = play(talk, options, bytewise)
    one.close()
    assert.deepEqual(seen(one), want, bytewise ? 'byte by byte' : 'whole')
    assert.equal(one.streams.inFlight, 0)
    assert.equal(one.refused, false)
  }
}

test('a request and its response are one operation with its times and sizes', () => {
  const one = play([
    ['>', 'POST /a HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\n'],
    ['>', 'abc'],
    ['<', 'HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\n'],
    ['<', 'done'],
  ])
  assert.deepEqual(seen(one), ['POST /a 201 fine 3 4'])
  const { startMs, responseMs, endMs, requestBytes, responseBytes, sequence, kind, signalType, duration } =
    one.ended[0]!
  assert.deepEqual([startMs, responseMs, endMs], [1, 3, 4])
  assert.deepEqual([requestBytes, responseBytes], [51, 47])
  assert.deepEqual([sequence, kind, signalType, duration], [1000, 2, 'http', 'http.server.request.duration'])
  assert.equal(one.asked, 1)
})

test('name and attributes are those of a kernel-framed exchange', () => {
  for (const server of [true, false]) {
    const one = play(
      [
        ['>', get],
        ['<', ok],
      ],
      { server },
    )
    const operation = kernelOperation({
      head: get,
      protocol: 'http1',
      server,
      status: 200,
      responseNs: 1000,
      localAddress: '10.0.0.1',
      localPort: server ? 8080 : 50_000,
      peerAddress: '10.0.0.2',
      peerPort: server ? 50_000 : 8080,
      responseBodyBytes: 5,
    })
    const { call } = operation
    assert.ok(http1.create({ route: (_operation, path) => path }).fillCall!(operation))
    assert.equal(one.ended[0]!.name, call.name)
    assert.deepEqual(one.ended[0]!.attributes, call.attributes.toObject())
    assert.deepEqual(one.ended[0]!.dimensions, call.dimensions.toObject())
  }
})

test('of a head its first bytes make the span, and trace context is read behind them, too', () => {
  const captureBytes = 300
  const context = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const long = `GET /${'x'.repeat(600)} HTTP/1.1\r\ntraceparent: ${context}\r\nUser-Agent: late\r\n\r\n`
  const one = play(
    [
      ['>', long],
      ['<', ok],
      ['>', get],
      ['<', ok],
    ],
    { options: { captureBytes } },
    true,
  )
  const [cut, whole] = one.ended
  assert.equal(cut!.attributes['url.path'], `/${'x'.repeat(captureBytes - 5)}`)
  assert.equal(cut!.attributes['user_agent.original'], undefined)
  assert.equal(cut!.context, context)
  assert.equal(cut!.requestBytes, long.length)
  assert.equal(whole!.attributes['user_agent.original'], 'curl/8.5')
})

test('inside TLS the scheme is https and its port is 443', () => {
  const talk: Talk = [
    ['>', 'GET /a HTTP/1.1\r\nHost: b\r\n\r\n'],
    ['<', ok],
  ]
  const served = play(talk, { tls: true }).ended[0]!.attributes
  assert.equal(served['url.scheme'], 'https')
  assert.equal(served['server.port'], 443)
  const asked = play(talk, { tls: true, server: false }).ended[0]!.attributes
  assert.equal(asked['url.full'], 'https://b/a')
  assert.equal(asked['server.port'], 443)
  const proxied = play(
    [
      ['>', 'GET http://c/a HTTP/1.1\r\nHost: c\r\n\r\n'],
      ['<', ok],
    ],
    { tls: true, server: false },
  )
  assert.equal(proxied.ended[0]!.attributes['url.full'], 'http://c/a')
})

test('bodies are framed by length, by chunks, by the end of the connection or not at all', () => {
  const fine = 'GET /users/42 200 fine 0'
  check(
    [
      ['>', get],
      ['<', ok],
      ['>', get],
      ['<', ok],
    ],
    [`${fine} 5`, `${fine} 5`],
  )
  check(
    [
      ['>', get],
      ['<', `${chunked}5\r\nhello\r\n0\r\n\r\n`],
      ['>', get],
      ['<', ok],
    ],
    [`${fine} 15`, `${fine} 5`],
  )
  check(
    [
      ['>', get],
      ['<', `${chunked}5;x="1"\r\n`],
      ['<', 'hello\r\n0\r\nExpires: 0\r\n\r\n'],
      ['>', get],
      ['<', ok],
    ],
    [`${fine} 33`, `${fine} 5`],
  )
  check(
    [
      ['>', get],
      ['<', 'HTTP/1.0 200 OK\r\n\r\nabc'],
      ['<', 'def'],
    ],
    [`${fine} 6`],
  )
  check(
    [
      ['>', get],
      ['<', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc'],
    ],
    [`${fine} 3`],
  )
  check(
    [
      ['>', get],
      ['<', 'HTTP/1.1 204 No Content\r\n\r\n'],
      ['>', get],
      ['<', ok],
    ],
    ['GET /users/42 204 fine 0 0', `${fine} 5`],
  )
  check(
    [
      ['>', get],
      ['<', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n'],
      ['>', get],
      ['<', ok],
    ],
    ['GET /users/42 304 fine 0 0', `${fine} 5`],
  )
  const head = get.replace('GET', 'HEAD')
  check(
    [
      ['>', head],
      ['<', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'],
      ['>', get],
      ['<', ok],
    ],
    ['HEAD /users/42 200 fine 0 0', `${fine} 5`],
  )
})

test('a chunked request is as long as its chunks', () => {
  const post = 'POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
  check(
    [
      ['>', `${post}3\r\nabc\r\n0\r\n\r\n`],
      ['<', ok],
      ['>', get],
      ['<', ok],
    ],
    ['POST /a 200 fine 13 5', 'GET /users/42 200 fine 0 5'],
  )
})

test('pipelined requests get their responses in order', () => {
  const statuses = Array.from({ length: 100 }, (_, i) => 400 + i)
  const requests = statuses.map(status => `GET /${status} HTTP/1.1\r\n\r\n`).join('')
  const responses = statuses.map(status => `HTTP/1.1 ${status} X\r\nContent-Length: 1\r\n\r\n.`).join('')
  check(
    [
      ['>', requests],
      ['<', responses],
    ],
    statuses.map(status => `GET /${status} ${status} fine 0 1`),
  )
})

test('interim responses are not the response', () => {
  check(
    [
      ['>', 'POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n'],
      ['<', 'HTTP/1.1 100 Continue\r\n\r\n'],
      ['>', 'ab'],
      ['<', 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n'],
      ['<', ok],
    ],
    ['POST /a 200 fine 2 5'],
  )
})

test('an early answer ends the operation, and the rest of the request is passed over', () => {
  check(
    [
      ['>', 'POST /a HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc'],
      ['<', 'HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n'],
      ['>', 'defghij'],
      ['>', get],
      ['<', ok],
    ],
    ['POST /a 413 fine 3 0', 'GET /users/42 200 fine 0 5'],
  )
})

test('a tunnel is the last of its connection', () => {
  const upgraded = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n'
  check(
    [
      ['>', get],
      ['<', `${upgraded}\x81\x05hello`],
      ['>', '\x81\x85junk'],
      ['>', get],
      ['<', ok],
    ],
    ['GET /users/42 101 fine 0 0'],
  )
  check(
    [
      ['>', 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'],
      ['<', 'HTTP/1.1 200 OK\r\n\r\n'],
      ['>', '\x16\x03\x01'],
      ['<', '\x16\x03'],
    ],
    ['CONNECT 200 fine 0 0'],
  )
})

test('what is under way when the connection ends has an error', () => {
  const ends = (talk: Talk, errno: number, want: string[]) => {
    const one = play(talk)
    one.close(errno)
    assert.deepEqual(seen(one), want)
  }
  ends([['>', get]], 0, ['GET /users/42 - connection_closed 0 -'])
  ends([['>', get]], 104, ['GET /users/42 - connection_reset 0 -'])
  ends(
    [
      ['>', get],
      ['<', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab'],
    ],
    110,
    ['GET /users/42 200 timeout 0 2'],
  )
  ends(
    [
      ['>', get],
      ['<', 'HTTP/1.0 200 OK\r\n\r\nab'],
    ],
    104,
    ['GET /users/42 200 connection_reset 0 2'],
  )
  ends([['>', 'POST /a HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc']], 32, ['POST /a - broken_pipe 3 -'])
  ends([['>', 'GET /slow HTTP/1.1\r\nHo']], 0, ['GET /slow - connection_closed 0 -'])
  ends(
    [
      ['>', get + get],
      ['<', ok],
    ],
    0,
    ['GET /users/42 200 fine 0 5', 'GET /users/42 - connection_closed 0 -'],
  )
  ends(
    [
      ['>', get],
      ['<', ok],
    ],
    104,
    ['GET /users/42 200 fine 0 5'],
  )
})

test('a response without an end is over with the next request', () => {
  check(
    [
      ['>', get],
      ['<', 'HTTP/1.1 200 OK\r\n\r\nab'],
      ['>', get],
      ['<', ok],
    ],
    ['GET /users/42 200 fine 0 2', 'GET /users/42 200 fine 0 5'],
  )
})

test('an answer that a client reads ahead of its request belongs to it', () => {
  check(
    [
      ['<', ok],
      ['>', get],
      ['>', get],
      ['<', ok],
    ],
    ['GET 200 fine 0 5', 'GET 200 fine 0 5'],
    { server: false },
  )
  check(
    [
      ['<', ok.slice(0, 30)],
      ['>', get],
      ['<', ok.slice(30)],
    ],
    ['GET 200 fine 0 5'],
    { server: false },
  )
})

test('on a connection that is older than the agent the first whole request is the first operation', () => {
  const joined = { joined: true }
  check(
    [
      ['<', 'rest of a body'],
      ['>', 'rest of another'],
      ['<', ok],
      ['>', get],
      ['<', ok],
    ],
    ['GET /users/42 200 fine 0 5'],
    joined,
  )
  const one = play(
    [
      ['>', `tail\r\n${get}`],
      ['<', ok],
      ['>', get],
      ['<', ok],
    ],
    joined,
  )
  assert.deepEqual(seen(one), ['GET /users/42 200 fine 0 5'])
})

test('bytes that are no HTTP/1 are refused', () => {
  const refused = (talk: Talk, options: SessionOptions = {}) => {
    const one = play(talk, options)
    assert.equal(one.refused, true)
    assert.deepEqual(one.ended, [])
    assert.equal(one.streams.inFlight, 0)
  }
  refused([['>', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']])
  refused([['>', 'EHLO x\r\n']])
  refused([['>', 'GET lost\r\n']])
  refused([['<', '220 mail ESMTP\r\n']], { server: false })
  refused(
    Array.from({ length: 255 }, () => ['>', 'no request at all'] as const),
    { joined: true },
  )
})

test('bodies of which only the ends were captured are measured by what was said of them', () => {
  const big = 'b'.repeat(100_000)
  const parts = [big.slice(0, 60_000), big.slice(60_000)]
  const play = (talk: Talk) => {
    const one = session()
    one.capture = 1_024
    for (const [who, text] of talk) who === '>' ? one.client(text) : one.serverSays(text)
    one.close()
    assert.equal(one.streams.inFlight, 0)
    assert.equal(one.lost, 0)
    return seen(one)
  }
  const last = 'GET /users/42 200 fine 0 5'
  assert.deepEqual(
    play([
      ['>', get],
      ['<', `HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n${parts[0]}`],
      ['<', parts[1]!],
      ['>', get],
      ['<', ok],
    ]),
    ['GET /users/42 200 fine 0 100000', last],
  )
  assert.deepEqual(
    play([
      ['>', `POST /a HTTP/1.1\r\nContent-Length: 100000\r\n\r\n${big}`],
      ['<', ok],
      ['>', get],
      ['<', ok],
    ]),
    ['POST /a 200 fine 100000 5', last],
  )
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  // Sizes of the later chunks are never seen.
  const streamed = chunked + chunk(parts[0]!) + chunk(parts[1]!)
  const whole = `GET /users/42 200 fine 0 ${streamed.length - chunked.length + 5}`
  assert.deepEqual(
    play([
      ['>', get],
      ['<', `${streamed}0\r\n\r\n`],
      ['>', get],
      ['<', ok],
    ]),
    [whole, last],
  )
  assert.deepEqual(
    play([
      ['>', get],
      ['<', streamed],
      ['<', '0\r\n\r\n'],
      ['>', get],
      ['<', ok],
    ]),
    [whole, last],
  )
  assert.deepEqual(
    play([
      ['>', get],
      ['<', `${streamed}0\r\nExpires: 0\r\n\r\n`],
      ['>', get],
      ['<', ok],
    ]),
    [`GET /users/42 200 fine 0 ${streamed.length - chunked.length + 17}`, last],
  )
  // The end itself is in what was not captured: the next request tells.
  assert.deepEqual(
    play([
      ['>', get],
      ['<', streamed],
      ['>', get],
      ['<', ok],
    ]),
    [`GET /users/42 200 fine 0 ${streamed.length - chunked.length}`, last],
  )
})

test('a gap where framing needs the bytes gives up what is under way, and the next request is seen again', () => {
  const one = session()
  one.client(get).lose(false, 7).serverSays('HTTP/1.1 200 OK\r\n')
  assert.equal(one.lost, 1)
  one.serverSays('x').client(get).serverSays(ok)
  assert.deepEqual(seen(one), ['GET /users/42 200 fine 0 5'])
  one.lose(true, 100).client('rest\r\n\r\n').client(get).serverSays(ok)
  assert.equal(seen(one).length, 2)
  assert.equal(one.refused, false)
})

test('a gap behind the end of a body takes what is behind it, not the body', () => {
  const one = session()
  one.client(get).serverSays(ok.slice(0, -2)).lose(false, 10).serverSays('x')
  assert.deepEqual(seen(one), ['GET /users/42 200 fine 0 5'])
  one.client(get).serverSays(ok.slice(0, -2)).lose(false, 2).client(get).serverSays(ok)
  assert.deepEqual(seen(one).slice(1), ['GET /users/42 200 fine 0 5', 'GET /users/42 200 fine 0 5'])
})

test('heads of any length are read, with what they say of the trace', () => {
  const context = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const lines = `Cookie: ${'c'.repeat(5_000)}\r\ntraceparent: ${context}\r\ntracestate: a=1\r\n`
  const one = play([
    ['>', `GET /a HTTP/1.1\r\n${lines}X: ${'x'.repeat(60_000)}\r\nContent-Length: 1\r\n\r\n1`],
    ['<', ok],
    ['>', get],
    ['<', ok],
  ])
  assert.deepEqual(seen(one), ['GET /a 200 fine 1 5', 'GET /users/42 200 fine 0 5'])
  assert.equal(one.ended[0]!.context, context)
  assert.equal(one.ended[0]!.state, 'a=1')
  const path = `/${'p'.repeat(40_000)}`
  assert.equal(
    seen(
      play([
        ['>', `GET ${path} HTTP/1.1\r\n\r\n`],
        ['<', `HTTP/1.1 200 ${'O'.repeat(20_000)}\r\nContent-Length: 0\r\n\r\n`],
      ]),
    ).length,
    1,
  )
})

const whole: Talk = [
  ['>', `POST /a HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`],
  ['<', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['<', `${chunked}5\r\nhello\r\n0\r\n\r\n`],
  ['>', get + get],
  ['<', ok + ok],
]

test('a connection that is cut at any byte leaves nothing under way', () => {
  const text = whole.map(([, part]) => part).join('')
  for (let cut = 0; cut < text.length; cut++) {
    const one = session()
    let left = cut
    for (const [who, part] of whole) {
      who === '>' ? one.client(part.slice(0, left)) : one.serverSays(part.slice(0, left))
      left = Math.max(0, left - part.length)
    }
    one.close()
    assert.equal(one.streams.inFlight, 0)
    assert.equal(one.lost, 0)
  }
})

test('any bytes are read without a fault, and nothing stays', () => {
  const piece = fc.oneof(
    fc.constantFrom(...whole.map(([, part]) => part), get, ok, chunked, '5\r\n', '\r\n', '0\r\n\r\n'),
    fc.string({ unit: 'binary', maxLength: 40 }),
  )
  const step = fc.record({ client: fc.boolean(), piece, from: fc.nat(60), lose: fc.nat(20) })
  const runs = soak ? 200_000 : 3_000
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), fc.boolean(), fc.boolean(), (steps, server, joined) => {
      const one = session({ server, joined })
      for (const { client, piece: text, from, lose } of steps) {
        if (lose > 18) one.lose(client, lose)
        const part = from > 40 ? text.slice(from - 40) : text
        client ? one.client(part) : one.serverSays(part)
      }
      one.close()
      assert.equal(one.streams.inFlight, 0)
    }),
    { numRuns: runs },
  )
})
