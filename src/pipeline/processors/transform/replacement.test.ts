import assert from 'node:assert/strict'
import test from 'node:test'
import { replacing } from './replacement.ts'

const now = () => 0

test('every match is replaced, and groups can be named', () => {
  const check = (pattern: string, replacement: string, text: string, want: string) =>
    assert.equal(replacing(pattern, replacement, now)(text), want, `${pattern} by ${replacement}`)
  check('b', 'x', 'abcb', 'axcx')
  check('b', '', 'abcb', 'ac')
  check('(a)(b)', '$2$1', 'ab-ab', 'ba-ba')
  check('(?P<user>\\w+)@(?P<host>\\w+)', '$<host> of $<user>', 'a@b', 'b of a')
  check('b', '<$0>', 'abc', 'a<b>c')
  check('b', '$$1', 'abc', 'a$1c')
  check('b', 'US$', 'abc', 'aUS$c')
  check('b', "$'$`$&", 'abc', "a$'$`$&c")
  check('(b)', '$10', 'abc', 'ab0c')
  check('(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)', '$10$1', 'abcdefghij', 'ja')
  check('(a)|b', '[$1]', 'ab', '[a][]')
  check('^', '> ', 'a', '> a')
  check('x*', '-', 'ab', '-a-b-')
  check('(a){2}(b)', '$2', 'aab', 'b')
})

test('what a replacement names must be there', () => {
  const check = (pattern: string, replacement: string, words: RegExp) =>
    assert.throws(() => replacing(pattern, replacement, now), words)
  check('a', '$1', /group \$1 is not in the pattern/)
  check('(a)', '$2', /group \$2 is not in the pattern/)
  check('(a)', '$<x>', /group \$<x> is not in the pattern/)
  check('(a)', '$<>', /group \$<> is not in the pattern/)
  check('(a){2}', '$1', /move the repetition into the group/)
  check('(', 'x', /unterminated group/)
})

test('a replacement that would make too long a text leaves it alone', () => {
  const wide = replacing('a', 'x'.repeat(1000), now)
  assert.equal(wide('a'.repeat(2000)), undefined)
  assert.equal(wide('b'.repeat(2000)), 'b'.repeat(2000))
  assert.equal(wide(`${'b'.repeat(2000)}a`)?.length, 3000)
  const twice = replacing('(b+)', '$1$1$1$1$1$1$1$1', now)
  assert.equal(twice('b'.repeat(200_000)), undefined)
  assert.equal(twice('b'.repeat(1000))?.length, 8000)
  // Empty matches stand between all letters.
  assert.equal(replacing('\\b|q*', 'x'.repeat(4096), now)('a'.repeat(100_000)), undefined)
})

test('matches that each look at all the rest end after a while', () => {
  const started = performance.now()
  assert.equal(replacing('a(?:.*z)?', '', () => performance.now())('a'.repeat(100_000)), undefined)
  // All of them would take minutes.
  assert.ok(performance.now() - started < 10_000)
})

test('a text that is too long for a large pattern stays as it is', () => {
  assert.equal(replacing('(?:[a-z]{1,9}){1,90}@', '', now)('x@'.padEnd(262_144)), undefined)
})

test('a long text is replaced like a short one, also where the machine stands still meanwhile', () => {
  let looks = 0
  const pausing = () => (looks++ < 100 ? 0 : 60_000)
  const replace = replacing('([a-z]+)@[a-z]+', '$1@…', pausing)
  const line = 'alice@example bob@example 17\n'
  assert.equal(replace(line.repeat(1000)), 'alice@… bob@… 17\n'.repeat(1000))
  assert.equal(replace(line), 'alice@… bob@… 17\n')
})
