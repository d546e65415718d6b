import assert from 'node:assert/strict'
import { classify, type Opening } from './classify.ts'

/** First bytes of connections, by protocol; some are what comes in the midst of one. */
const openings: readonly (readonly [protocol: string, bytes: string])[] = [
  ['http1', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['http1', 'CONNECT a.example:443 HTTP/1.1\r\n\r\n'],
  ['http1', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['http2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
  ['http2', '\0\0\0\x04\0\0\0\0\0'],
  ['tls', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'],
  ['smtp', '220 mail.example ESMTP Postfix\r\n'],
  ['smtp', 'EHLO a.example\r\n'],
  ['ftp', '230 User logged in, proceed.\r\n'],
  ['pop3', '+OK POP3 ready\r\n'],
  ['ssh', 'SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n'],
  ['postgres', '\0\0\0\x27\0\x03\0\0user\0postgres\0database\0shop\0\0'],
  ['postgres', 'Q\0\0\0\x0dSELECT 1\0'],
  ['postgres', '1\0\0\0\x042\0\0\0\x04T\0\0\0\x21\0\x01'],
  ['postgres', '3\0\0\0\x04Z\0\0\0\x05I'],
  ['mysql', '\x4a\0\0\0\x0a8.0.36\0\x0b\0\0\0abcdefgh\0\xff\xf7'],
  ['mysql', '\x09\0\0\0\x03SELECT 1'],
  ['mysql', '\x30\0\0\0\x03SELECT * FROM orders WHERE customer_id = 4711 x'],
  ['redis', '*2\r\n$3\r\nGET\r\n$1\r\na\r\n'],
  ['redis', 'PING\r\n'],
  ['redis', 'INFO\r\n'],
  ['redis', '+PONG\r\n'],
  ['redis', '-ERR unknown command\r\n'],
  ['memcached', 'get a\r\n'],
  ['memcached', '30\r\n'],
  ['memcached', 'VALUE a 0 1\r\nx\r\nEND\r\n'],
  ['mongodb', '\x29\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x14\0\0\0\x10ping\0\x01\0\0\0\0\0\0\0\0'],
  ['kafka', '\0\0\0\x1a\0\x12\0\x03\0\0\0\x01\0\x07console\0\x05test\x041.0\0'],
  ['amqp', 'AMQP\0\0\x09\x01'],
  ['amqp', '\x01\0\x01\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\0\x01\0\xce'],
  ['mqtt', '\x10\x0f\0\x04MQTT\x04\x02\0\x3c\0\x03c01'],
  ['mqtt', '\x30\x0a\0\x03a/bhello'],
  ['nats', 'INFO {"server_id":"NA","version":"2.9.10"} \r\n'],
  ['nats', 'CONNECT {"verbose":false,"lang":"go"}\r\nPING\r\n'],
  ['nats', 'PUB orders.new 5\r\nhello\r\n'],
  ['dns', '\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01'],
  ['dns', '\x30\x1d\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\x03com\0\0\x01\0\x01'],
  ['text', 'PUB is short for public house\r\n'],
  ['text', 'INFO  2024-01-01 started {"a":1}\n'],
]

/** Holds that nothing of other protocols and no bytes of chance are taken for this one, new connections or old. */
export function checkForeignOpenings(protocol: string, randoms = 20_000): void {
  const foreign: Opening[] = []
  const names: string[] = []
  for (const joined of [false, true])
    for (const [name, bytes] of openings) {
      if (name === protocol || (name === 'text' && joined)) continue
      foreign.push({ bytes, joined })
      names.push(`${name}: ${bytes}`)
    }
  let state = 1
  for (let i = 0; i < randoms; i++) {
    const bytes = Buffer.alloc(1 + (i % 64))
    for (let at = 0; at < bytes.length; at++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      bytes[at] = state >>> 16
    }
    foreign.push({ bytes, joined: i % 2 === 0, peerPort: i % 3 === 0 ? 1883 : 4222 })
    names.push(bytes.toString('hex'))
  }
  classify(foreign).forEach((found, i) => {
    assert.notEqual(found.protocol, protocol, names[i])
  })
}
