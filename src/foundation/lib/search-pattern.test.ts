import assert from 'node:assert/strict'
import test from 'node:test'
import { SearchPattern } from './search-pattern.ts'

test('groups keep what they matched, whatever stands around them', () => {
  const check = (source: string, text: string, want: readonly (string | undefined)[]) => {
    const pattern = new SearchPattern(source, { keepsGroups: true })
    const match = pattern.exec(text)
    assert.deepEqual(
      match && pattern.groups.map(({ number }) => (number === 0 ? 'lost' : match[number])),
      want,
      source,
    )
  }
  check('(a)(b)', 'xab', ['a', 'b'])
  check('(a(b)c)', 'abc', ['abc', 'b'])
  check('(?:a)(?P<x>b)', 'ab', ['b'])
  check('(?<x>b)', 'ab', ['b'])
  check('(?i)(AB)c', 'abC', ['ab'])
  check('[(](a)[)]', '(a)', ['a'])
  check('[](](a)', '](a', ['a'])
  check('[^](](a)', '(xa', ['a'])
  check('[[:alpha:](](a)', 'ba', ['a'])
  check('\\((a)\\)', '(a)', ['a'])
  check('\\Q(\\E(a)', '(a', ['a'])
  check('(\\Q)\\E)(a)', ')a', [')', 'a'])
  check('(a)|(b)', 'b', [undefined, 'b'])
  check('(a)*(b)?', 'aa', ['a', undefined])
  check('(a){2}(b)', 'aab', ['lost', 'b'])
  check('((a{2}){1,3})c', 'aaaac', ['aaaa', 'lost'])
})

test('a pattern with groups matches what it matches without', () => {
  const check = (source: string, yes: string, no: string) => {
    assert.equal(new SearchPattern(source, { keepsGroups: true }).test(yes), true, source)
    assert.equal(new SearchPattern(source, { keepsGroups: true }).test(no), false, source)
  }
  check('^(a|b)+$', 'abba', 'abc')
  check('^(?P<n>[0-9]{1,3})\\.', '10.', '1000.')
  check('(?s)^(.)$', '\n', '')
  check('(?m)^(b)$', 'a\nb', 'ab')
  check('^$', '', 'a')
})

test('a pattern that cannot be used is refused in words', () => {
  assert.throws(() => new SearchPattern('(a'), /unterminated group/)
  assert.throws(() => new SearchPattern('(a)'.repeat(100), { keepsGroups: true }), /more than 99 groups/)
  assert.throws(() => new SearchPattern('(\ue000)', { keepsGroups: true }), /private-use/)
  assert.ok(new SearchPattern('\ue000').test('\ue000'))
})

test('searching a long text takes no quadratic time', () => {
  const letters = 'a'.repeat(262_144)
  for (const source of [
    '[a-z]+@',
    '([a-z]+)@',
    '(?:a|b)*c',
    'a.*z',
    '^(a+)+$',
    '[a-z]{1,64}@',
    '(?i)(A+)+Z',
  ]) {
    const pattern = new SearchPattern(source)
    const before = process.cpuUsage().user
    pattern.test(letters)
    // Quadratic time took 19 s and more.
    assert.ok(process.cpuUsage().user - before < 5e6, source)
  }
})

test('a text that is too long for a large pattern is not searched', () => {
  const pattern = new SearchPattern('(?:[a-z]{1,9}){1,90}@')
  assert.equal(pattern.test('x@'), true)
  assert.equal(pattern.test('x@'.padEnd(1000)), true)
  assert.equal(pattern.isTooLong('x@'.padEnd(1000)), false)
  const long = 'x@'.padEnd(262_144)
  assert.equal(pattern.isTooLong(long), true)
  assert.equal(pattern.test(long), false)
  assert.equal(pattern.exec(long), null)
  assert.equal(new SearchPattern('[a-z]+@').isTooLong(long), false)
})

test('both engines find the same', () => {
  const check = (source: string, text: string) => {
    const pattern = new SearchPattern(source, { keepsGroups: true })
    const found = (whole: string) => [...whole.matchAll(pattern.all(whole))].map(match => [...match])
    assert.deepEqual(found(text.padEnd(3000, '\n')), found(text), source)
  }
  check('([a-z]+)@([a-z.]+)\\b', 'to alice@example.com and bob@b.org')
  check('(?i)Token=([^ &]*)&?(x)?', 'TOKEN=abc&x token= y')
  check('(a|ab)(c|bcd)(d*)', 'abcd abcdd')
  check('(?P<k>\\w+?)=(?P<v>"[^"]*"|\\S+)', 'a="b c" d=e')
})
