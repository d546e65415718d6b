import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { anchoredRegExp, capturingRegExp, linearRegExp } from './linear-regexp.ts'

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
  check('^x{3,}$', 'xxxx', 'xx')
  check('^(?:ab|c){1,2}?$', 'abc', 'ababc')
  check('^[0-9a-f]{64}$', 'c0de'.repeat(16), 'c0de'.repeat(17))
  check('^{a}$', '{a}', 'a')
  check('^a(?i)b$', 'aB', 'AB')
  check('^a(?i:b)c$', 'aBc', 'aBC')
  check('^(?i)a(?-i:b)c$', 'AbC', 'ABC')
  check('^(a(?i)b|c)d$', 'Cd', 'CD')
  check('^a(?s:.)$', 'a\n', 'a')
  check('^(?s)a(?-s:.)$', 'ab', 'a\n')
  check('^[\\s]\\s$', ' \n', '\u00a0\v')
  check('^[\\S]\\S$', '\u00a0\v', ' \n')
})

test('without regard to case letters, ranges and classes match in both', () => {
  const check = (source: string, yes: string, no: string) => {
    assert.ok(linearRegExp(source).test(yes), `${source} on ${yes}`)
    assert.ok(!linearRegExp(source).test(no), `${source} on ${no}`)
  }
  check('(?i)^[W-c]+$', 'wXyAbC', 'D')
  check('(?i)^[^a]$', 'B', 'A')
  check('(?i)^[[:lower:]]+$', 'Ab', 'a1')
  check('(?i)^\\x41\\Qb.\\E$', 'aB.', 'abc')
  check('(?is)^é.É$', 'É\né', 'e\né')
})

test('an anchored pattern matches the whole, flags and alternatives included', () => {
  assert.ok(anchoredRegExp('(?i)eth.|lo').test('ETH0'))
  assert.ok(!anchoredRegExp('eth|lo').test('eth0'))
})

test('what RE2 has not is refused in words', () => {
  const check = (source: string, words: RegExp) => assert.throws(() => linearRegExp(source), words)
  check('(?=a)', /lookaround/)
  check('(?<!a)b', /lookaround/)
  check('(a)\\1', /backreference/)
  check('a(?m)b', /flag m in the middle/)
  check('a(?U:b)', /flag U/)
  check('(?#a)', /does not begin a group/)
  check('\\pL', /Unicode class/)
  check('[[:nope:]]', /is unknown/)
  check('(a', /unterminated group/)
  check('[a', /is not closed/)
  check('[b-a]', /ends before it begins/)
  check('a{2}{3}', /a repetition/)
  check('a{1001}', /more than 1000 times/)
  check('((a{100}){100}){10}', /repeats too much/)
  check('\\y', /is not an escape sequence/)
})

test('a pattern that backtracks without end takes no longer than another', () => {
  for (const source of ['^(a+)+$', '(?i)^(A+)+$', '^(a{1,40})+$', '^(?P<x>a{0,9}){0,40}$']) {
    const pattern = linearRegExp(source)
    const started = performance.now()
    assert.equal(pattern.test(`${'a'.repeat(200)}b`), false)
    // Backtracking would take 2^200 steps.
    assert.ok(performance.now() - started < 10_000, source)
  }
})

test('groups keep what they keep in RE2, copies of them included', () => {
  const check = (source: string, text: string, want: readonly (string | undefined)[] | undefined) => {
    const { regexp, groups } = capturingRegExp(source)
    const match = regexp.exec(text)
    const told = groups.map(({ numbers }) => match?.[numbers.findLast(n => match[n] !== undefined) ?? -1])
    assert.deepEqual(match ? told : undefined, want, `${source} on ${text}`)
  }
  check('(.*)', 'a\nb', ['a\nb', 'a\nb'])
  check('(?-s)(.*)', 'a\nb', undefined)
  check('a', 'ab', undefined)
  check('a|b', 'b', ['b'])
  check('(a)|(b)', 'b', ['b', undefined, 'b'])
  check('(?:(\\d+)\\.){3}', '1.2.3.', ['1.2.3.', '3'])
  check('(?:(\\d+)\\.){1,3}', '1.2.', ['1.2.', '2'])
  check('(?:(\\d+)\\.){2,}', '1.2.3.', ['1.2.3.', '3'])
  check('(?P<x>a)(?:b)(?<y>c)(?i)(D)', 'abcd', ['abcd', 'a', 'c', 'd'])
  check('(?i)(a)', 'A', ['A', 'A'])
  check('[(](\\()\\Q(\\E(x)', '(((x', ['(((x', '(', 'x'])
  assert.deepEqual(
    capturingRegExp('(?P<x>a)(b)').groups.map(group => group.name),
    ['', 'x', ''],
  )
  assert.throws(() => capturingRegExp('(?P<x>a)(?P<x>b)'), /two groups named x/)
  assert.throws(() => capturingRegExp('(?im)a'), /remove the flag/)
  assert.throws(() => capturingRegExp('a)(?:b'), /unmatched/)
  assert.throws(() => capturingRegExp('(((a){40}){40})'), /more than 1000 times/)
  const { regexp } = capturingRegExp('((a+)+)+(b|c)')
  const started = performance.now()
  assert.equal(regexp.test('a'.repeat(2000)), false)
  assert.ok(performance.now() - started < 10_000)
})

test('V8 says itself that it can take them in linear time', () => {
  setFlagsFromString('--enable-experimental-regexp-engine')
  const take = (source: string) => new RegExp(source, 'l')
  for (const source of ['(?i)^\\w[a-z](\\b|c)*$', '(?P<n>x{17,400}){2}', '(?ms)^.{0,99}?$', '(a|){50}'])
    assert.ok(take(linearRegExp(source).source), source)
  for (const source of ['(?-s)([^a]|.)(?i:b)', '(?P<n>x{17,400}){2}', '(a|(.)|){50}\\s[\\S]'])
    assert.ok(take(capturingRegExp(source).regexp.source), source)
  assert.throws(() => take('a{17}'), /linear time/)
})

/** What RE2 and JavaScript write alike, and mean alike. */
const common = fc.letrec<{ whole: string; part: string }>(tie => ({
  part: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    fc.constantFrom(
      'a',
      'b',
      '-',
      '.',
      '\\.',
      '\\d',
      '\\w',
      '\\b',
      '[a-c]',
      '[^b]',
      '[\\d_]',
      '[.-]',
      '^',
      '$',
      '_',
      '\\x41',
    ),
    tie('whole').map(whole => `(?:${whole})`),
    tie('whole').map(whole => `(${whole})`),
  ),
  whole: fc
    .array(
      fc.array(
        fc
          .tuple(tie('part'), fc.constantFrom('', '', '', '*', '+', '?', '*?', '{2}', '{0,3}', '{1,}'))
          .map(([part, times]) => (/^(?:\^|\$|\\b)$/.test(part) ? part : part + times)),
        { maxLength: 4 },
      ),
      { minLength: 1, maxLength: 3 },
    )
    .map(alternatives => alternatives.map(parts => parts.join('')).join('|')),
}))
const texts = fc.string({
  unit: fc.constantFrom('a', 'b', 'c', '-', '.', '1', '_', 'A', '\n'),
  maxLength: 24,
})
const numRuns = soak ? 20_000 : 80

test('a pattern of both matches what it matches in JavaScript', () => {
  fc.assert(
    fc.property(common.whole, fc.array(texts, { minLength: 1, maxLength: 5 }), (source, all) => {
      const [ours, theirs] = [linearRegExp(source), new RegExp(source)]
      const anchored = [anchoredRegExp(source), new RegExp(`^(?:${source})$`)] as const
      for (const text of all) {
        assert.equal(ours.test(text), theirs.test(text), `${source} on ${JSON.stringify(text)}`)
        assert.equal(
          anchored[0].test(text),
          anchored[1].test(text),
          `${source} on all of ${JSON.stringify(text)}`,
        )
      }
    }),
    { numRuns },
  )
})

test('whatever is taken, V8 can take in linear time, and what is not is told in words', () => {
  setFlagsFromString('--enable-experimental-regexp-engine')
  const pieces = fc.constantFrom(
    ...[
      '(',
      ')',
      '[',
      ']',
      '{',
      '}',
      '|',
      '*',
      '+',
      '?',
      '\\',
      '^',
      '$',
      '(?i)',
      '(?P<n>',
      '(?:',
      '(?i:',
      '(?=',
      '\\Q',
      '\\E',
    ],
    ...[
      '{2}',
      '{0,40}',
      '{17,20}',
      '{5,2}',
      '\\1',
      '\\pL',
      '\\x{41}',
      '\\077',
      '[[:alpha:]]',
      '[^',
      'a-',
      'z',
      '\u{1f600}',
      '\n',
      '/',
    ],
  )
  const any = fc.oneof(
    common.whole,
    fc.array(pieces, { maxLength: 12 }).map(parts => parts.join('')),
    fc.string({ unit: 'binary', maxLength: 12 }),
  )
  const taken = (make: () => RegExp) => {
    try {
      return make()
    } catch (error) {
      assert.ok((error as Error).message !== '' && (error as Error).message.length < 200, String(error))
      assert.ok(!/^(?:Type|Range|Reference)Error$/.test((error as Error).name), String(error))
      return undefined
    }
  }
  fc.assert(
    fc.property(any, source => {
      for (const make of [linearRegExp, anchoredRegExp, (each: string) => capturingRegExp(each).regexp]) {
        const regexp = taken(() => make(source))
        if (regexp !== undefined) assert.ok(new RegExp(regexp.source, `${regexp.flags}l`))
      }
    }),
    { numRuns },
  )
})
