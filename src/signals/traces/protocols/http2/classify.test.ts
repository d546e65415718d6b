import assert from 'node:assert/strict'
import { test } from 'node:test'
import { classify, type Opening } from '../../../../../test/helpers/classify.ts'
import { soak } from '../../../../../test/helpers/soak.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

/** Who is said to send each of them. */
function check(want: string, openings: readonly Opening[]): void {
  const seen = classify(openings)
  for (const [i, { protocol, from }] of seen.entries())
    assert.equal(protocol === 'http2' ? from : 'other', want, Buffer.from(openings[i]!.bytes).toString('hex'))
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const joined = (text: string, length?: number): Opening => ({
  bytes: hex(text),
  joined: true,
  ...(length === undefined ? {} : { length }),
})

test('a client is known by its preface, a server by its first settings', () => {
  check('client', [
    { bytes: preface },
    { bytes: `${preface}\x00\x00\x00\x04\x00\x00\x00\x00\x00` },
    { bytes: preface, joined: true },
    { bytes: preface.slice(0, 14) },
  ])
  check('server', [
    // node:http2, nghttp2, Go and the C core of gRPC
    { bytes: hex('000000040000000000') },
    { bytes: hex('00000604000000000000030000 0064') },
    {
      bytes: hex(
        '00001804000000000000050010000000030000 00fa00060010014000040010000000000408000000000000 0f0001',
      ),
      length: 46,
    },
    {
      bytes: hex(
        '00002404000000000000020000000000030000000000047fffffff 0005004000000006 00004000fe0300000001',
      ),
      length: 45,
    },
  ])
})

test('a later call of a connection is known by its frame', () => {
  check('client', [
    joined('00000b0105000000018286 84be 5886a8eb10649cbf', 20),
    joined('000005 0104 0000000b 83 86 be bf c0', 26),
    joined('000004 0104 0000000b bf 83 86 be', 13),
    joined('000009 0125 0000000b 00000000 0f 82 84 86 be', 18),
  ])
  check('server', [joined('000002 0104 0000000b 88 be', 35), joined('000001 0105 00000001 8d', 10)])
  check('either', [
    joined('00000408 00 00000000 00000fff'),
    joined('00000408 00 00000000 00000fff 000008 06 00 00000000 0102030405060708'),
    joined('00000806 01 00000000 0102030405060708'),
    joined('00000004 01 00000000'),
    joined('00000403 00 00000005 00000008'),
    joined('000007 00 01 0000000b 00 00000002 0801'),
    joined('000001 0105 0000000b be'),
  ])
})

test('what others send is not taken for it', () => {
  const others: Opening[] = [
    'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'POST /x HTTP/1.1\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
    '220 mail.example ESMTP\r\n',
    'SSH-2.0-OpenSSH_9.2\r\n',
    '*1\r\n$4\r\nPING\r\n',
    'INFO {"server_id":"x"}\r\n',
    'AMQP\x00\x00\x09\x01',
    'get a\r\n',
    'PRINT x\r\n',
    hex('1603010200010001fc0303'),
    // PostgreSQL: start, SSL request, query; MySQL: greeting, query
    hex('0000002300030000 7573657200706f737467726573'),
    hex('0000000804d2162f'),
    hex('51000000 0d53454c45435420313b00'),
    hex('4a0000000a352e352e352d31302e31312e'),
    hex('09000000 0353454c4543542031'),
    // Kafka: ApiVersions, and a produce request whose length ends like a type of frame
    hex('00000023001200030000000100086b61666b616a73'),
    { bytes: hex('000006040000000000000101 00086b61666b616a73'), length: 1_544 },
    { bytes: hex('00000104000100 0b00000301 00086b61666b616a73'), length: 264 },
    // MongoDB, MQTT, DNS over TCP
    hex('3f0000000100000000000000dd07000000000000'),
    hex('100c00044d5154540402003c0000'),
    hex('001d1234010000010000000000000377777701610000010001'),
    hex('00'.repeat(64)),
    hex('ff'.repeat(64)),
  ].map(bytes => (typeof bytes === 'object' && 'bytes' in bytes ? bytes : { bytes }))
  check('other', others)
  check(
    'other',
    others.map(opening => ({ ...opening, joined: true })),
  )
})

test('random bytes are hardly ever taken for it', () => {
  const count = soak ? 200_000 : 10_000
  let seed = 12_345
  const random = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
    return seed >> 16
  }
  const openings = Array.from({ length: count }, (_, i) => ({
    bytes: Buffer.from(Array.from({ length: 64 }, () => random() & 255)),
    joined: i % 2 === 0,
  }))
  assert.equal(classify(openings).filter(({ protocol }) => protocol === 'http2').length, 0)
})
