import assert from 'node:assert/strict'
import { connect, createServer, type IncomingHttpHeaders } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer, connect as dial } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { HpackDecoder, HpackFields, HpackNames, Known } from './hpack.ts'
import { decodeHuffman } from './hpack-huffman.ts'

const wanted = [
  ':method',
  ':path',
  ':authority',
  ':scheme',
  ':status',
  'custom-key',
  'cache-control',
  'tracestate',
]
const names = new HpackNames(wanted)
const fields = new HpackFields(names, ['tracestate'])

/** Reads a block and tells what is known of it; `?` stands for a hidden value, `??` counts fields of unknown name. */
function read(decoder: HpackDecoder, block: string | Buffer): Record<string, unknown> | undefined {
  const bytes = typeof block === 'string' ? Buffer.from(block.replaceAll(' ', ''), 'hex') : block
  fields.clear()
  if (!decoder.decode(Buffer.concat([Buffer.from('xx'), bytes]), 2, bytes.length + 2, fields))
    return undefined
  const seen: Record<string, unknown> = {}
  names.list.forEach((name, number) => {
    if (fields.known[number] === Known.hidden) seen[name] = '?'
    if (fields.has(number))
      seen[name] = fields.bytes.toString('latin1', fields.starts[number], fields.ends[number])
  })
  if (fields.unknown > 0) seen['??'] = fields.unknown
  return seen
}

const get = { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'www.example.com' }

test('the examples of RFC 7541 without Huffman coding are read (C.3)', () => {
  const decoder = new HpackDecoder(false)
  assert.deepEqual(read(decoder, '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d'), get)
  assert.deepEqual(read(decoder, '8286 84be 5808 6e6f 2d63 6163 6865'), {
    ...get,
    'cache-control': 'no-cache',
  })
  assert.deepEqual(
    read(decoder, '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65'),
    {
      ...get,
      ':scheme': 'https',
      ':path': '/index.html',
      'custom-key': 'custom-value',
    },
  )
})

test('the examples of RFC 7541 with Huffman coding are read (C.4)', () => {
  const decoder = new HpackDecoder(false)
  assert.deepEqual(read(decoder, '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff'), get)
  assert.deepEqual(read(decoder, '8286 84be 5886 a8eb 1064 9cbf'), { ...get, 'cache-control': 'no-cache' })
  assert.deepEqual(read(decoder, '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf'), {
    ...get,
    ':scheme': 'https',
    ':path': '/index.html',
    'custom-key': 'custom-value',
  })
})

test('a decoder that joined later knows what came since, and tells the rest as unknown', () => {
  const decoder = new HpackDecoder(true)
  assert.deepEqual(read(decoder, '8286 84be 5886 a8eb 1064 9cbf'), {
    ':method': 'GET',
    ':scheme': 'http',
    ':path': '/',
    'cache-control': 'no-cache',
    '??': 1,
  })
  // 0xbe is the newest entry now, 0xbf the one that is not known; a literal may take the name of that one.
  assert.deepEqual(read(decoder, '82be bf'), { ':method': 'GET', 'cache-control': 'no-cache', '??': 1 })
  assert.deepEqual(read(decoder, '7f00 0161 be'), { '??': 2 })
  decoder.forget()
  assert.deepEqual(read(decoder, 'be'), { '??': 1 })
})

test('the table keeps to its size and to updates of it', () => {
  const decoder = new HpackDecoder(false)
  const literal = (value: string) => Buffer.concat([Buffer.from([0x44, value.length]), Buffer.from(value)])
  for (let i = 0; i < 1000; i++) {
    const path = `/${i}`.padEnd(90, 'x')
    assert.deepEqual(read(decoder, literal(path)), { ':path': path })
    assert.deepEqual(read(decoder, 'be'), { ':path': path })
  }
  // 4,096 bytes hold 32 entries of 90 + 5 + 32 bytes, as the decoder takes a known name's bytes for none.
  assert.deepEqual(read(decoder, Buffer.from([0x80 | (61 + 30)])), { ':path': '/970'.padEnd(90, 'x') })
  assert.deepEqual(read(decoder, Buffer.from([0x80 | (61 + 40)])), { '??': 1 })
  assert.deepEqual(read(decoder, '20be'), { '??': 1 })
  assert.deepEqual(read(decoder, literal('/a')), { ':path': '/a' })
  assert.deepEqual(read(decoder, 'be'), { '??': 1 })
  assert.deepEqual(read(decoder, '3fe11f'), {})
  assert.deepEqual(read(decoder, literal('/b')), { ':path': '/b' })
  assert.deepEqual(read(decoder, 'be'), { ':path': '/b' })
})

test('of a field that comes twice the first counts, and a list has all of it', () => {
  const decoder = new HpackDecoder(false)
  const state = (value: string) =>
    `000a${Buffer.from('tracestate').toString('hex')}${value.length.toString(16).padStart(2, '0')}${Buffer.from(value).toString('hex')}`
  assert.deepEqual(read(decoder, `8283${state('a=1')}84${state('b=2')}`), {
    ':method': 'GET',
    ':path': '/',
    tracestate: 'a=1,b=2',
  })
})

test('a malformed block is told as such', () => {
  const decoder = new HpackDecoder(false)
  for (const block of [
    '80',
    'ff',
    'ffffffffffffff',
    '40',
    '4001',
    '400161',
    '4001610261',
    '44',
    '4481',
    '448100',
    '4485f1e3c2e5',
    '44ffffffffffffff',
    '3f',
    '0001',
  ])
    assert.equal(read(decoder, block), undefined, block)
  // Padding has less than 8 bits, all of them one; the end of the string does not stand in it.
  const target = Buffer.alloc(64)
  const huffman = (text: string) => {
    const bytes = Buffer.from(text, 'hex')
    return decodeHuffman(bytes, 0, bytes.length, target, 0)
  }
  assert.equal(huffman('1f'), 1)
  assert.equal(huffman('1fff'), -1)
  assert.equal(huffman('18'), -1)
  assert.equal(huffman('fffffffc'), -1)
  assert.equal(huffman('ff'), -1)
})

test('values beyond the bounds are hidden, and nothing else is harmed', () => {
  const decoder = new HpackDecoder(false)
  const long = 'x'.repeat(40_000)
  const head = Buffer.from([
    0x04,
    0x7f,
    ...[40_000 - 127].flatMap(n => [(n & 0x7f) | 0x80, ((n >> 7) & 0x7f) | 0x80, n >> 14]),
  ])
  assert.deepEqual(read(decoder, Buffer.concat([head, Buffer.from(long), Buffer.from([0x82])])), {
    ':path': '?',
    ':method': 'GET',
  })
})

/** Header blocks that the library under node:http2 makes of these headers, one for each. */
async function encoded(requests: readonly IncomingHttpHeaders[]): Promise<Buffer[]> {
  const server = createServer()
  server.on('stream', stream => {
    stream.respond()
    stream.end()
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const chunks: Buffer[] = []
  const proxy = createTcpServer(socket => {
    const upstream = dial((server.address() as AddressInfo).port, '127.0.0.1')
    socket.on('data', chunk => chunks.push(chunk as Buffer))
    socket.pipe(upstream).pipe(socket)
    socket.on('error', () => upstream.destroy())
    upstream.on('error', () => socket.destroy())
  })
  await new Promise<void>(done => proxy.listen(0, '127.0.0.1', done))
  const client = connect(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`)
  for (const headers of requests) {
    const stream = client.request(headers)
    stream.resume()
    stream.end()
    await new Promise(done => stream.on('close', done))
  }
  await new Promise<void>(done => client.close(done))
  proxy.close()
  await new Promise(done => server.close(done))
  const bytes = Buffer.concat(chunks)
  const blocks: Buffer[] = []
  for (let at = 24; at + 9 <= bytes.length; ) {
    const length = bytes.readUIntBE(at, 3)
    const flags = bytes[at + 4]!
    assert.equal(flags & 8, 0)
    if (bytes[at + 3] === 1) blocks.push(bytes.subarray(at + 9 + (flags & 0x20 ? 5 : 0), at + 9 + length))
    at += 9 + length
  }
  return blocks
}

test('what the library of Node.js encodes is read, every byte that a value may have included', async () => {
  const all = String.fromCharCode(
    ...Array.from({ length: 224 }, (_, i) => i + 32).filter(code => code !== 127),
  )
  const requests = Array.from({ length: 300 }, (_, i) => ({
    ':method': ['GET', 'PUT', 'DELETE'][i % 3]!,
    ':path': `/${i % 40}/${'deep/'.repeat(i % 7)}`,
    ':authority': 'a.example',
    'custom-key': `x${i % 11 === 0 ? all : i % 50}x`,
    [`other-${i % 20}`]: 'o'.repeat(i % 200),
  }))
  const blocks = await encoded(requests)
  assert.equal(blocks.length, requests.length)
  const decoder = new HpackDecoder(false)
  const late = new HpackDecoder(true)
  for (const [i, block] of blocks.entries()) {
    const { ':method': method, ':path': path, ':authority': authority, 'custom-key': key } = requests[i]!
    const want = {
      ':method': method,
      ':path': path,
      ':authority': authority,
      ':scheme': 'http',
      'custom-key': key,
    }
    assert.deepEqual(
      read(decoder, block),
      Object.fromEntries(
        wanted.filter(name => name in want).map(name => [name, want[name as keyof typeof want]]),
      ),
    )
    if (i < 100) continue
    const seen = read(late, block)!
    for (const [name, value] of Object.entries(seen))
      if (name !== '??') assert.equal(value, want[name as keyof typeof want])
  }
})

test('any bytes are read without a fault', () => {
  const decoders = [new HpackDecoder(false), new HpackDecoder(true)]
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.nat(1), (bytes, which) => {
      read(decoders[which]!, Buffer.from(bytes))
    }),
    { numRuns: soak ? 1_000_000 : 20_000 },
  )
})
