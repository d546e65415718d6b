// What proxies tell of the client, held to a second reading by regular expressions, and to its own place in the bytes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteRange } from './byte-range.ts'
import { Forwarded } from './http-forwarded.ts'

type Kind = 'readForwarded' | 'readFor' | 'readHost' | 'readProto'

/** What is read of a field that stands between other bytes. */
function read(kind: Kind, field: string, before = '', behind = '') {
  const bytes = Buffer.from(before + field + behind, 'latin1')
  const range = new ByteRange()
  range.set(before.length, before.length + Buffer.from(field, 'latin1').length)
  const forwarded = new Forwarded()
  forwarded[kind](bytes, range)
  const text = ({ start, end, empty }: ByteRange) => {
    if (empty) return ''
    assert.ok(start >= range.start && end <= range.end, `${start}-${end} lies outside of the field`)
    return bytes.toString('latin1', start, end)
  }
  const { client, host, scheme } = forwarded
  return { client: text(client), host: text(host.host), port: host.port, scheme }
}

const client = fc.oneof(
  fc.ipV4(),
  fc.ipV6().map(each => `[${each}]`),
)
const port = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 65_535 }))
const host = fc.oneof(fc.domain(), client)
const blank = fc.constantFrom('', '', ' ', '\t', '  ')
const anyCase = (word: string) =>
  fc.constantFrom(word, word.toUpperCase(), word[0]!.toUpperCase() + word.slice(1))
const withPort = (name: string, port: number) => (port === 0 ? name : `${name}:${port}`)
const bare = (name: string) => name.replace(/^\[|\]$/g, '')

/** A quoted text of another parameter, with all that would end a pair outside of quotes. */
const quoted = fc
  .array(fc.constantFrom('a', ',', ';', '=', '\\"', '\\\\', ' for=6.6.6.6', 'host=evil.example'))
  .map(parts => `"${parts.join('')}"`)

test('the first element is read, in any order of its pairs and however it is written', () => {
  const element = fc.record({
    client,
    clientPort: port,
    host,
    hostPort: port,
    scheme: fc.constantFrom('http', 'https'),
  })
  fc.assert(
    fc.property(
      element,
      fc.tuple(anyCase('for'), anyCase('host'), anyCase('proto'), anyCase('by')),
      quoted,
      fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }),
      fc.array(blank, { minLength: 8, maxLength: 8 }),
      fc.constantFrom('', ', for=6.6.6.6;host=evil.example;proto=http', ',', ';'),
      (told, [forName, hostName, protoName, byName], by, order, blanks, rest) => {
        const pairs = [
          `${forName}="${withPort(told.client, told.clientPort)}"`,
          `${hostName}="${withPort(told.host, told.hostPort)}"`,
          `${protoName}=${told.scheme}`,
          `${byName}=${by}`,
        ]
        const field = order.map((pair, i) => blanks[i]! + pairs[pair]! + blanks[i + 4]!).join(';') + rest
        assert.deepEqual(read('readForwarded', field, 'for=7.7.7.7;', 'for=8.8.8.8'), {
          client: bare(told.client),
          host: bare(told.host),
          port: told.hostPort,
          scheme: told.scheme,
        })
        const list = blanks[0] + withPort(told.client, told.clientPort) + rest.replace(/^;.*/, '')
        assert.equal(read('readFor', list, '9').client, bare(told.client))
      },
    ),
  )
})

test('whatever stands there, what is read lies in the field and is an address, a host and a scheme', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'for=',
      'host=',
      'proto=',
      'https',
      '"',
      '[',
      ']',
      ':',
      ',',
      ';',
      '=',
      '@',
      ' ',
      '\\',
      '%',
    ),
    fc.constantFrom(
      '1.2.3.4',
      '2001:db8::1',
      'a.example',
      '99999999',
      '_hidden',
      'unknown',
      '\0',
      '\r\n',
      '\x80',
    ),
    fc.string({ unit: fc.nat(255).map(code => String.fromCharCode(code)), maxLength: 8 }),
  )
  const field = fc.array(piece, { maxLength: 16 }).map(pieces => pieces.join(''))
  const kind = fc.constantFrom<Kind>('readForwarded', 'readFor', 'readHost', 'readProto')
  fc.assert(
    fc.property(kind, field, piece, piece, (kind, field, before, behind) => {
      const told = read(kind, field)
      assert.match(told.client, /^$|^(?=.*[.:])[0-9a-fA-F.:]{2,45}$/)
      assert.match(told.host, /^[!#-.0-Z\\^-~]{0,261}$/)
      assert.ok(told.port >= 0 && told.port <= 65_535)
      assert.match(told.scheme, /^(?:https?)?$/)
      assert.deepEqual(read(kind, field, before, behind), told, 'what stands around it is of no matter')
    }),
    { numRuns: 1_000 },
  )
})

test('a quote that a backslash takes does not end a quoted text', () => {
  assert.equal(read('readForwarded', 'by="a\\",for=6.6.6.6";for=1.2.3.4').client, '1.2.3.4')
  assert.equal(read('readForwarded', 'by="a\\\\";for=1.2.3.4').client, '1.2.3.4')
})

test('brackets make no host of what is none', () => {
  for (const host of ['[a b]', '["]', '[\x01]', '[a/b]', '[é]', '[]'])
    assert.equal(read('readHost', host).host, '', host)
  assert.equal(read('readHost', '[fe80::1%25eth0]:80').host, 'fe80::1%25eth0')
})
