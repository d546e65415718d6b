import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anchoredRegExp, linearRegExp } from './linear-regexp.ts'

test('what RE2 writes in another way matches the same', () => {
  const check = (source: string, yes: string, no: string) => {
    assert.ok(linearRegExp(source).test(yes), `${source} on ${yes}`)
    assert.ok(!linearRegExp(source).test(no), `${source} on ${no}`)
  }
  check('(?i)^eth\\d+$', 'ETH0', 'wlan0')
  check('^(?P<kind>veth|br)-', 'br-1', 'eth-1')
  check('\\Aeth[[:digit:]]+\\z', 'eth12', 'eth')
  check('^[[:alpha:]_]+$', 'a_b', 'a1')
  check('^[]a]$', ']', 'b')
  check('^[^]a]$', 'b', ']')
  check('^\\Qa.b\\E$', 'a.b', 'axb')
  check('^\\x{41}$', 'A', 'B')
  check('^[a[b]$', '[', 'c')
  check('^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\\d+n\\d+p)\\d+$', 'sda1', 'sda')
  check('^/(dev|proc)($|/)', '/dev/shm', '/devices')
})

test('an anchored pattern matches the whole, flags and alternatives included', () => {
  assert.ok(anchoredRegExp('(?i)eth.|lo').test('ETH0'))
  assert.ok(!anchoredRegExp('eth|lo').test('eth0'))
})

test('what RE2 has not is refused in words', () => {
  const check = (source: string, words: RegExp) => assert.throws(() => linearRegExp(source), words)
  check('(?=a)', /looks around/)
  check('(?<!a)b', /looks around/)
  check('(a)\\1', /refers back/)
  check('a(?i)b', /flags inside/)
  check('\\pL', /Unicode class/)
  check('[[:nope:]]', /not known/)
  check('(a', /unterminated group/)
})

test('a pattern that backtracks without end takes no longer than another', () => {
  const pattern = linearRegExp('^(a+)+$')
  const started = performance.now()
  assert.equal(pattern.test(`${'a'.repeat(200)}b`), false)
  // Backtracking would take 2^200 steps.
  assert.ok(performance.now() - started < 10_000)
})
