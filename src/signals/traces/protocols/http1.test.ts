import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type GivenOperation, kernelOperation } from '../../../../test/helpers/kernel-operation.ts'
import type { Call } from '../../../foundation/model/call.ts'
import type { Operation } from '../../../foundation/model/stream.ts'
import { http1 } from './http1.ts'

const route = (_operation: Operation, path: string): string => path.replace(/\d+/g, '*')
const protocol = http1.create({ route })

type Given = GivenOperation & { readonly head: string }

const get =
  'GET /users/42?q=1 HTTP/1.1\r\nHost: shop.example:8080\r\nUser-Agent: curl/8.5\r\nAccept: */*\r\n\r\n'

function operationOf({ head, ...rest }: Given): Operation {
  const bytes = Buffer.from(`..${head}..`, 'latin1')
  return kernelOperation({
    protocol: 'http1',
    server: true,
    status: 200,
    localAddress: '10.0.0.1',
    localPort: 8080,
    peerAddress: '10.0.0.2',
    peerPort: 51_000,
    ...rest,
    head: { bytes, start: 2, end: bytes.length - 2 },
  })
}

/** The call that a server saw; undefined when the protocol does not know it. */
function server(given: Given): Call | undefined {
  const operation = operationOf(given)
  return protocol.fillCall?.(operation) ? operation.call : undefined
}

/** The same on the client's side of a connection to 10.0.0.1:8080. */
function client(given: Given): Call | undefined {
  return server({
    server: false,
    localAddress: '10.0.0.2',
    localPort: 51_000,
    peerAddress: '10.0.0.1',
    peerPort: 8080,
    ...given,
  })
}

function attributes(call: Call | undefined): Record<string, unknown> {
  assert.ok(call)
  return call.attributes.toObject()
}

test('a server span has the attributes of the convention', () => {
  const call = server({ head: get, requestBodyBytes: 0, responseBodyBytes: 512 })
  assert.equal(call?.name, 'GET /users/*')
  assert.equal(call?.error, '')
  assert.equal(call?.path, '/users/42')
  assert.deepEqual(attributes(call), {
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'url.path': '/users/42',
    'url.query': 'q=1',
    'http.route': '/users/*',
    'server.address': 'shop.example',
    'server.port': 8080,
    'client.address': '10.0.0.2',
    'user_agent.original': 'curl/8.5',
    'http.response.status_code': 200,
    'network.protocol.version': '1.1',
    'network.peer.address': '10.0.0.2',
    'network.peer.port': 51_000,
    'http.request.body.size': 0,
    'http.response.body.size': 512,
  })
})

test('a client span has the attributes of the convention', () => {
  const call = client({ head: get, responseBodyBytes: 512 })
  assert.equal(call?.name, 'GET')
  assert.deepEqual(attributes(call), {
    'http.request.method': 'GET',
    'server.address': 'shop.example',
    'server.port': 8080,
    'url.full': 'http://shop.example:8080/users/42?q=1',
    'http.response.status_code': 200,
    'network.protocol.version': '1.1',
    'network.peer.address': '10.0.0.1',
    'network.peer.port': 8080,
    'http.request.body.size': 0,
    'http.response.body.size': 512,
  })
})

test('the dimensions are those of the duration histograms', () => {
  assert.deepEqual(server({ head: get, status: 503 })?.dimensions.toObject(), {
    'http.request.method': 'GET',
    'url.scheme': 'http',
    'http.route': '/users/*',
    'http.response.status_code': 503,
    'error.type': '503',
    'network.protocol.version': '1.1',
  })
  assert.deepEqual(client({ head: get, status: 404 })?.dimensions.toObject(), {
    'http.request.method': 'GET',
    'server.address': 'shop.example',
    'server.port': 8080,
    'http.response.status_code': 404,
    'error.type': '404',
    'network.protocol.version': '1.1',
  })
  assert.equal(server({ head: get })?.duration?.name, 'http.server.request.duration')
  assert.equal(client({ head: get })?.duration?.name, 'http.client.request.duration')
  assert.deepEqual(
    server({ head: get })?.duration?.bounds,
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  )
})

test('methods of the convention are known, others are _OTHER with the original beside', () => {
  const check = (method: string, known: boolean) => {
    const call = server({ head: `${method} /a HTTP/1.1\r\n\r\n` })
    assert.equal(call?.name, known ? `${method} /a` : 'HTTP /a')
    assert.equal(attributes(call)['http.request.method'], known ? method : '_OTHER')
    assert.equal(attributes(call)['http.request.method_original'], known ? undefined : method)
    assert.equal(call?.dimensions.get('http.request.method'), known ? method : '_OTHER')
    assert.equal(call?.dimensions.get('http.request.method_original'), undefined)
  }
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'])
    check(method, true)
  for (const method of ['get', 'Get', 'PROPFIND', 'FOO', 'M-SEARCH']) check(method, false)
})

test('the known methods can be replaced', () => {
  const own = http1.create({ route, knownMethods: ['PROPFIND'] })
  const name = (method: string) => {
    const operation = operationOf({ head: `${method} /a HTTP/1.1\r\n\r\n` })
    assert.ok(own.fillCall?.(operation))
    return operation.call.name
  }
  assert.equal(name('PROPFIND'), 'PROPFIND /a')
  assert.equal(name('GET'), 'HTTP /a')
})

test('a span without a route is named by its method', () => {
  const own = http1.create({ route: () => '' })
  const operation = operationOf({ head: get })
  const { call } = operation
  assert.ok(own.fillCall?.(operation))
  assert.equal(call.name, 'GET')
  assert.equal(call.attributes.get('http.route'), undefined)
  assert.equal(call.dimensions.get('http.route'), undefined)
})

test('the four forms of a target are read', () => {
  const check = (head: string, wantServer: Record<string, unknown>, wantFull: string) => {
    const given = attributes(server({ head }))
    for (const key of ['url.path', 'url.query', 'server.address', 'server.port', 'http.route'])
      assert.equal(given[key], wantServer[key], `${head}: ${key}`)
    assert.equal(attributes(client({ head }))['url.full'], wantFull)
  }
  const host = 'Host: a.example\r\n\r\n'
  check(
    `GET /x?y=z#f HTTP/1.1\r\n${host}`,
    {
      'url.path': '/x',
      'url.query': 'y=z',
      'server.address': 'a.example',
      'server.port': 80,
      'http.route': '/x',
    },
    'http://a.example/x?y=z',
  )
  check(
    `GET http://b.example:81/x?y HTTP/1.1\r\n${host}`,
    {
      'url.path': '/x',
      'url.query': 'y',
      'server.address': 'b.example',
      'server.port': 81,
      'http.route': '/x',
    },
    'http://b.example:81/x?y',
  )
  check(
    `GET HTTP://b.example HTTP/1.1\r\n${host}`,
    { 'url.path': '/', 'server.address': 'b.example', 'server.port': 80, 'http.route': '/' },
    'http://b.example',
  )
  check(
    `GET http://b.example?q HTTP/1.1\r\n${host}`,
    {
      'url.path': '/',
      'url.query': 'q',
      'server.address': 'b.example',
      'server.port': 80,
      'http.route': '/',
    },
    'http://b.example?q',
  )
  check(
    `OPTIONS * HTTP/1.1\r\n${host}`,
    { 'url.path': '*', 'server.address': 'a.example', 'server.port': 80 },
    'http://a.example',
  )
  check(
    `CONNECT c.example:443 HTTP/1.1\r\n${host}`,
    { 'server.address': 'c.example', 'server.port': 443 },
    '//c.example:443',
  )
})

test('the host of the server is that of the Host field, whatever its form', () => {
  const check = (field: string, address: string, port: number) => {
    const head = `GET / HTTP/1.1\r\n${field}\r\n\r\n`
    for (const call of [server({ head }), client({ head })]) {
      assert.equal(attributes(call)['server.address'], address, field)
      assert.equal(attributes(call)['server.port'], port, field)
    }
  }
  check('Host: a.example', 'a.example', 80)
  check('host:a.example:8080', 'a.example', 8080)
  check('HOST: \t a.example:8080 \t', 'a.example', 8080)
  check('Host: 127.0.0.1:3000', '127.0.0.1', 3000)
  check('Host: [::1]:3000', '::1', 3000)
  check('Host: [2001:db8::1]', '2001:db8::1', 80)
  check('X: y\r\nHost: a.example\r\nHost: b.example', 'a.example', 80)
})

test('without a usable Host the addresses of the connection stand in', () => {
  const check = (head: string) => {
    assert.equal(attributes(server({ head }))['server.address'], '10.0.0.1')
    assert.equal(attributes(server({ head }))['server.port'], 8080)
    assert.equal(attributes(client({ head }))['server.address'], '10.0.0.1')
    assert.equal(attributes(client({ head }))['server.port'], 8080)
    assert.equal(attributes(client({ head }))['url.full'], 'http://10.0.0.1:8080/a')
  }
  check('GET /a HTTP/1.0\r\n\r\n')
  check('GET /a HTTP/1.1\r\nHost:\r\n\r\n')
  check('GET /a HTTP/1.1\r\nHost: a:b:c\r\n\r\n')
  check('GET /a HTTP/1.1\r\nHost: a:99999\r\n\r\n')
  check('GET /a HTTP/1.1\r\nHost: a"b\r\n\r\n')
  check(`GET /a HTTP/1.1\r\nHost: ${'a'.repeat(300)}\r\n\r\n`)
  check('GET /a HTTP/1.1\r\nHost: cut-of')
  const full = (given: Omit<GivenOperation, 'head'>) =>
    attributes(client({ head: 'GET /a HTTP/1.0\r\n\r\n', ...given }))['url.full']
  assert.equal(full({ peerAddress: '::1' }), 'http://[::1]:8080/a')
  assert.equal(full({ peerPort: 80 }), 'http://10.0.0.1/a')
  assert.equal(full({ peerPort: 65_535 }), 'http://10.0.0.1:65535/a')
  assert.equal(full({ peerPort: 10_000 }), 'http://10.0.0.1:10000/a')
  assert.equal(full({ peerPort: 8 }), 'http://10.0.0.1:8/a')
})

test('what proxies tell of the client is believed', () => {
  const check = (fields: string, want: Record<string, unknown>) => {
    const given = attributes(server({ head: `GET / HTTP/1.1\r\nHost: inner:8080\r\n${fields}\r\n\r\n` }))
    for (const [key, value] of Object.entries(want)) assert.equal(given[key], value, `${fields}: ${key}`)
    assert.equal(given['network.peer.address'], '10.0.0.2')
  }
  check('X-Forwarded-For: 203.0.113.7', { 'client.address': '203.0.113.7' })
  check('x-forwarded-for: 203.0.113.7, 10.1.1.1', { 'client.address': '203.0.113.7' })
  check('X-Forwarded-For: 203.0.113.7:4711', { 'client.address': '203.0.113.7' })
  check('X-Forwarded-For: 2001:db8::1', { 'client.address': '2001:db8::1' })
  check('X-Forwarded-For: [2001:db8::1]:4711', { 'client.address': '2001:db8::1' })
  check('X-Forwarded-For: unknown', { 'client.address': '10.0.0.2' })
  check('X-Forwarded-For: <script>', { 'client.address': '10.0.0.2' })
  check('X-Forwarded-Host: shop.example', { 'server.address': 'shop.example', 'server.port': 80 })
  check('X-Forwarded-Proto: https', { 'url.scheme': 'https', 'server.address': 'inner', 'server.port': 8080 })
  check('X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example', {
    'url.scheme': 'https',
    'server.port': 443,
  })
  check('X-Forwarded-Proto: gopher', { 'url.scheme': 'http' })
  check('Forwarded: for=192.0.2.60;proto=https;by=203.0.113.43;host=shop.example:444, for=198.51.100.17', {
    'client.address': '192.0.2.60',
    'url.scheme': 'https',
    'server.address': 'shop.example',
    'server.port': 444,
  })
  check('Forwarded: For="[2001:db8:cafe::17]:4711"', { 'client.address': '2001:db8:cafe::17' })
  check('Forwarded: for=_hidden, for=198.51.100.17', { 'client.address': '10.0.0.2' })
  check('Forwarded: for="192.0.2.1"; Proto = HTTPS', { 'client.address': '192.0.2.1', 'url.scheme': 'https' })
  check('X-Forwarded-For: 192.0.2.9\r\nForwarded: for=192.0.2.8', { 'client.address': '192.0.2.8' })
  check('X-Forwarded-For: 192.0.2.9\r\nForwarded: proto=https', {
    'client.address': '192.0.2.9',
    'url.scheme': 'https',
  })
})

test('credentials and signatures in URLs are redacted', () => {
  const target = 'http://jo:secret@b.example/x?X-Amz-Signature=abc&a=1&sig=def'
  const head = `GET ${target} HTTP/1.1\r\n\r\n`
  const full = attributes(client({ head }))['url.full']
  assert.equal(full, 'http://REDACTED:REDACTED@b.example/x?X-Amz-Signature=REDACTED&a=1&sig=REDACTED')
  assert.equal(attributes(client({ head }))['server.address'], 'b.example')
  assert.equal(attributes(server({ head }))['url.query'], 'X-Amz-Signature=REDACTED&a=1&sig=REDACTED')
  assert.equal(attributes(server({ head }))['server.address'], 'b.example')
})

test('error.type follows the side, the status and the way the exchange ended', () => {
  const check = (given: Omit<GivenOperation, 'head'>, onServer: string, onClient: string) => {
    for (const [call, want] of [
      [server({ head: get, ...given }), onServer],
      [client({ head: get, ...given }), onClient],
    ] as const) {
      assert.equal(call?.error, want)
      assert.equal(call?.attributes.get('error.type'), want || undefined)
      assert.equal(call?.dimensions.get('error.type'), want || undefined)
    }
  }
  check({ status: 101 }, '', '')
  check({ status: 204 }, '', '')
  check({ status: 304 }, '', '')
  check({ status: 400 }, '', '400')
  check({ status: 499 }, '', '499')
  check({ status: 500 }, '500', '500')
  check({ status: 999 }, '999', '999')
  check({ status: 0, aborted: true, errno: 104 }, 'connection_reset', 'connection_reset')
  check({ status: 0, aborted: true, errno: 32 }, 'broken_pipe', 'broken_pipe')
  check({ status: 0, aborted: true, errno: 110 }, 'timeout', 'timeout')
  check({ status: 0, aborted: true, errno: 5 }, '_OTHER', '_OTHER')
  check({ status: 0, aborted: true }, 'connection_closed', 'connection_closed')
  check({ status: 200, aborted: true }, 'connection_closed', 'connection_closed')
  check({ status: 200, aborted: true, errno: 104 }, 'connection_reset', 'connection_reset')
  check({ status: 503, aborted: true, errno: 104 }, '503', '503')
  check({ status: 0 }, 'no_response', 'no_response')
})

test('without a response there is no status and no response size', () => {
  const given = attributes(server({ head: get, status: 0, aborted: true }))
  assert.ok(!('http.response.status_code' in given) && !('http.response.body.size' in given))
})

test('the version comes from the request line', () => {
  const check = (version: string, want: string) =>
    assert.equal(attributes(server({ head: `GET / ${version}\r\n\r\n` }))['network.protocol.version'], want)
  check('HTTP/1.0', '1.0')
  check('HTTP/1.1', '1.1')
  check('HTTP/1.2', '1.1')
})

test('exports of telemetry by applications are told from their other calls', () => {
  const check = (line: string, type: string, want: boolean) => {
    const head = `${line} HTTP/1.1\r\nHost: c:4318\r\n${type === '' ? '' : `Content-Type: ${type}\r\n`}\r\n`
    assert.equal(client({ head })?.telemetry, want, `${line} ${type}`)
  }
  check('POST /v1/traces', 'application/x-protobuf', true)
  check('POST /v1/metrics', 'application/json', true)
  check('POST /v1/logs', 'Application/JSON; charset=utf-8', true)
  check('POST /v1development/profiles', 'application/x-protobuf', true)
  check('POST http://c:4318/v1/traces', 'application/x-protobuf', true)
  check('POST /otlp/v1/traces', 'application/x-protobuf', true)
  check('POST /traces', 'application/x-protobuf', false)
  check('GET /v1/traces', 'application/json', false)
  check('POST /v1/traces', 'text/plain', false)
  check('POST /v1/traces', '', false)
  check('POST /v1/traces/7', 'application/json', false)
  check('POST /api/v1/logs', 'application/json', false)
})

test('bytes that are not a request line are not HTTP', () => {
  const check = (head: string) => assert.equal(server({ head }), undefined, JSON.stringify(head))
  check('')
  check('GET')
  check('GET ')
  check('GET  / HTTP/1.1\r\n\r\n')
  check('GET /\r\n')
  check('GET / HTTP/2.0\r\n\r\n')
  check('GET / HTTP/1.x\r\n\r\n')
  check('GET / HTTP/1.1x\r\n\r\n')
  check('GET / FOO/1.1\r\n\r\n')
  check('GET x HTTP/1.1\r\n\r\n')
  check('GET *x HTTP/1.1\r\n\r\n')
  check('GET http:// HTTP/1.1\r\n\r\n')
  check('CONNECT / HTTP/1.1\r\n\r\n'.replace('/ ', '" '))
  check('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  check('FOO /')
  check('G\x00T / HTTP/1.1\r\n\r\n')
  check(`${'A'.repeat(33)} / HTTP/1.1\r\n\r\n`)
  check('*1\r\n$4\r\nPING\r\n')
  check('HTTP/1.1 200 OK\r\n\r\n')
})

test('an empty line before the request line, and bare line feeds, are forgiven', () => {
  assert.equal(server({ head: `\r\n${get}` })?.name, 'GET /users/*')
  const bare = server({ head: 'GET /a HTTP/1.1\nHost: a.example\n\n' })
  assert.equal(attributes(bare)['server.address'], 'a.example')
})

test('fields behind the end of the head are body and not read', () => {
  const call = server({ head: 'POST /a HTTP/1.1\r\nX: y\r\n\r\nHost: b.example\r\n' })
  assert.equal(attributes(call)['server.address'], '10.0.0.1')
})

test('a head that is cut off gives what was whole before the cut', () => {
  for (let cut = 0; cut <= get.length; cut++) {
    const call = server({ head: get.slice(0, cut) })
    if (cut < 'GET /'.length) {
      assert.equal(call, undefined)
      continue
    }
    const given = attributes(call)
    assert.equal(given['http.request.method'], 'GET')
    assert.ok('/users/42'.startsWith(String(given['url.path'])))
    const host = cut >= get.indexOf('\nUser-Agent') + 1 ? 'shop.example' : '10.0.0.1'
    assert.equal(given['server.address'], host, `cut at ${cut}`)
    assert.equal(given['user_agent.original'], cut >= get.indexOf('\nAccept') + 1 ? 'curl/8.5' : undefined)
    assert.equal(given['network.protocol.version'], cut >= get.indexOf('1.1') + 3 ? '1.1' : undefined)
  }
})

test('wherever the range of the request lies, nothing outside of it is read', () => {
  const bytes = Buffer.from(`POST /secret HTTP/1.1\r\n${get}`)
  for (const [start, end] of [
    [-5, 40],
    [23, 9_999],
    [23, bytes.length],
    [9_999, 10_000],
    [40, 23],
  ] as const) {
    const operation = operationOf({ head: '' })
    Object.assign(operation.head, { bytes, start, end })
    assert.equal(protocol.fillCall?.(operation), start < 40 && end >= 40, `${start}..${end}`)
  }
})

test('the same request gives the same string objects without decoding them again', () => {
  const own = http1.create({ route: () => '/users/*' })
  const operation = operationOf({ head: get })
  const { call, head } = operation
  own.fillCall?.(operation)
  const decode = head.bytes.toString
  let decoded = 0
  head.bytes.toString = function (...args) {
    decoded++
    return decode.apply(this, args)
  }
  for (let i = 0; i < 100; i++) {
    call.attributes.clear()
    call.dimensions.clear()
    own.fillCall?.(operation)
  }
  assert.equal(decoded, 0)
})

test('what a parser that knows nothing of bytes reads from any request, this one reads too', () => {
  const token = fc.stringMatching(/^[A-Za-z0-9-]{1,12}$/)
  const path = fc.stringMatching(/^\/[a-z0-9/._~-]{0,40}$/)
  const query = fc.option(fc.stringMatching(/^[a-h0-9&=]{1,30}$/), { nil: undefined })
  const name = token.filter(each => !/^(host|user-agent|forwarded|content-type|x-forwarded-)/i.test(each))
  const field = fc.tuple(name, fc.stringMatching(/^[ -~]{0,30}$/))
  fc.assert(
    fc.property(
      path,
      query,
      fc.array(field, { maxLength: 6 }),
      fc.nat(6),
      token,
      (path, query, fields, place, host) => {
        const lines = fields.map(([key, value]) => `${key}: ${value}`)
        lines.splice(place, 0, `Host: ${host}`)
        const target = query === undefined ? path : `${path}?${query}`
        const given = attributes(server({ head: `GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n` }))
        assert.equal(given['url.path'], path)
        assert.equal(given['url.query'], query)
        assert.equal(given['server.address'], host)
      },
    ),
  )
})

test('no request, whole or damaged, makes it throw', () => {
  const damaged = fc.tuple(fc.nat(get.length - 1), fc.nat(255))
  fc.assert(
    fc.property(fc.array(damaged, { maxLength: 8 }), fc.boolean(), (changes, onServer) => {
      const bytes = Buffer.from(get)
      for (const [at, byte] of changes) bytes[at] = byte
      const given = { head: bytes.toString('latin1') }
      const call = onServer ? server(given) : client(given)
      assert.ok(call === undefined || call.attributes.size === new Set(Object.keys(attributes(call))).size)
    }),
    { numRuns: 2_000 },
  )
})
