import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf, RateLimit } from './rate-limit.ts'

test('a second’s worth of requests may come at once, and then as many as the rate gives', () => {
  let now = 0
  const limit = new RateLimit(4, () => now)
  const taken = (count: number, from = 'a') =>
    Array.from({ length: count }, () => limit.take(from)).filter(seconds => seconds === 0).length
  assert.equal(taken(10), 4)
  now = 250
  assert.equal(taken(10), 1)
  now = 260
  assert.equal(taken(1), 0)
  assert.equal(taken(10, 'b'), 4)
  now = 3_600_000
  assert.equal(taken(10), 4)
  assert.equal(limit.take('a'), 1)
})

test('users of this host have a bucket each, whatever address they ask from', () => {
  const limit = new RateLimit(2, () => 0)
  const take = (address: string, user?: number) => limit.take(clientOf(address, user))
  assert.deepEqual(
    [take('127.0.0.1', 0), take('127.0.0.2', 0), take('::1', 0), take('127.0.0.1', 1000), take('127.0.0.1')],
    [0, 0, 1, 0, 0],
  )
})

test('however many addresses ask, each one is held to the rate and few are remembered', () => {
  const limit = new RateLimit(1, () => 0)
  for (let i = 0; i < 10_000; i++) {
    assert.equal(limit.take(`10.0.${i >> 8}.${i & 255}`), 0)
    assert.ok(limit.take(`10.0.${i >> 8}.${i & 255}`) > 0)
  }
})

test('a client is an IPv4 address or a /64', () => {
  const check = (client: string, ...addresses: string[]) => {
    for (const address of addresses) assert.equal(clientOf(address), client, address)
  }
  check('10.1.2.3', '10.1.2.3', '::ffff:10.1.2.3')
  check('2001:db8:1:2', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::', '2001:db8:1:2::9', '2001:db8:1:2:ffff::1')
  check('2001:db8:0:0', '2001:db8::1', '2001:db8::1:0:0:1')
  check('0:0:0:0', '::1', '::')
  check('fe80:0:0:0', 'fe80::1%eth0', 'fe80::2')
  check('', '')
  check('no:address', 'no:address')
})
