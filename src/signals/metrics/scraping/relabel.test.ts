// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of replacements.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileRelabel, type RelabelFault, type RelabelRule, relabel } from './relabel.ts'

type Labels = Readonly<Record<string, string>>
type Written = Readonly<Record<string, unknown>>

function compiled(written: unknown): RelabelRule {
  const rule = compileRelabel(written)
  assert.ok(!Array.isArray(rule), JSON.stringify([written, rule]))
  return rule as RelabelRule
}

/** Labels after the rules; undefined: dropped. */
function after(written: Written | readonly Written[], labels: Labels): Labels | undefined {
  const map = new Map(Object.entries(labels))
  const kept = relabel([written].flat().map(compiled), map)
  return kept ? Object.fromEntries(map) : undefined
}

function check(written: Written | readonly Written[], labels: Labels, want: Labels | undefined): void {
  const found = after(written, labels)
  assert.deepEqual(found, want, JSON.stringify([written, labels]))
}

test('replace writes what the expression found, where it found something', () => {
  const base = { a: 'foo', b: 'bar', c: 'baz' }
  const rule = (own: Written) => ({ source_labels: ['a'], target_label: 'd', ...own })
  check(rule({}), base, { ...base, d: 'foo' })
  check(rule({ regex: 'f(.*)', replacement: 'ch${1}-ch${1}' }), base, { ...base, d: 'choo-choo' })
  check(rule({ regex: 'f', replacement: 'x' }), base, base)
  check(rule({ regex: 'f(.)', replacement: 'x' }), base, base)
  check(rule({ source_labels: ['a', 'b'], regex: 'f(.*);(.*)r', replacement: 'b${1}${2}m' }), base, {
    ...base,
    d: 'boobam',
  })
  check(rule({ source_labels: ['a', 'b'], separator: '' }), base, { ...base, d: 'foobar' })
  check(rule({ source_labels: ['a', 'none', 'b'] }), base, { ...base, d: 'foo;;bar' })
  check(rule({ source_labels: ['a', 'b'], separator: '$1' }), base, { ...base, d: 'foo$1bar' })
  check(rule({ source_labels: [], replacement: 'fixed' }), base, { ...base, d: 'fixed' })
  check({ target_label: 'd', replacement: 'fixed' }, base, { ...base, d: 'fixed' })
  check({ target_label: 'a', replacement: 'fixed' }, base, { ...base, a: 'fixed' })
  check({ target_label: 'd', source_labels: ['none'] }, base, base)
  check({ target_label: 'a', source_labels: ['none'] }, base, { b: 'bar', c: 'baz' })
  check({ target_label: 'a', replacement: '' }, base, { b: 'bar', c: 'baz' })
  check({ target_label: 'a', replacement: null }, base, { b: 'bar', c: 'baz' })
  check({ target_label: 'a', regex: null, replacement: 'x' }, base, { ...base, a: 'x' })
  check({ target_label: 'a', regex: null, replacement: 'x', source_labels: ['a'] }, base, base)
  check({ target_label: 'a', regex: '', replacement: 'x', source_labels: ['none'] }, base, {
    ...base,
    a: 'x',
  })
  check(rule({ regex: 'o', replacement: 'x' }), base, base)
  check(rule({ regex: '(?i)FOO' }), base, base)
  check(rule({ regex: '(?i)(FOO)' }), base, { ...base, d: 'foo' })
  check(rule({ regex: 'b|(f)oo|r' }), base, { ...base, d: 'f' })
  check(rule({ action: 'Replace' }), base, { ...base, d: 'foo' })
  check(rule({ replacement: 5 }), base, { ...base, d: '5' })
  check(rule({ replacement: true }), base, { ...base, d: 'true' })
  check(rule({ regex: 5, source_labels: ['n'], replacement: '$0$0' }), { n: '5' }, { n: '5', d: '55' })
  check([rule({}), { source_labels: ['d'], target_label: 'e', regex: '(.).*' }], base, {
    ...base,
    d: 'foo',
    e: 'f',
  })
  check({ source_labels: ['a'], target_label: 'd' }, { a: 'x\ny' }, { a: 'x\ny', d: 'x\ny' })
})

test('replacements have the variables of Go', () => {
  const replaced = (replacement: string, want: string) =>
    check(
      { source_labels: ['a'], regex: '(?P<first>[a-z]+)-(?:(\\d)|(x))(.*)', target_label: 'd', replacement },
      { a: 'ab-7cd' },
      want === '' ? { a: 'ab-7cd' } : { a: 'ab-7cd', d: want },
    )
  replaced('$0', 'ab-7cd')
  replaced('${0}', 'ab-7cd')
  replaced('$1', 'ab')
  replaced('$1$2', 'ab7')
  replaced('<$3>', '<>')
  replaced('$4', 'cd')
  replaced('$5', '')
  replaced('x$9y', 'x')
  replaced('${9}y', 'y')
  replaced('$1x', '')
  replaced('${1}x', 'abx')
  replaced('$1-x', 'ab-x')
  replaced('$first', 'ab')
  replaced('${first}s', 'abs')
  replaced('$firsts', '')
  replaced('$01', '')
  replaced('$$', '$')
  replaced('$$1', '$1')
  replaced('$$$1', '$ab')
  replaced('$', '$')
  replaced('a$', 'a$')
  replaced('$-', '$-')
  replaced('${', '${')
  replaced('${}', '${}')
  replaced('${1', '${1')
  replaced('${1.}', '${1.}')
  replaced('$1é', '')
  replaced('${1}é', 'abé')
  replaced('$123456789012', '')
  replaced('\\1', '\\1')
})

test('a label can be named by what was found', () => {
  const rule = { source_labels: ['a'], regex: '(\\w+)=(.*)', target_label: 'is_${1}', replacement: '$2' }
  check(rule, { a: 'x=y' }, { a: 'x=y', is_x: 'y' })
  check(rule, { a: 'x=' }, { a: 'x=' })
  check(rule, { a: '=y' }, { a: '=y' })
  check({ ...rule, target_label: '$3' }, { a: 'x=y' }, { a: 'x=y' })
  check({ ...rule, target_label: '$2' }, { a: 'x=é ü' }, { a: 'x=é ü', 'é ü': 'é ü' })
  check({ ...rule, target_label: 'a' }, { a: 'x=y' }, { a: 'y' })
  check({ ...rule, target_label: '$1' }, { a: 'a=' }, {})
})

test('keep and drop judge the whole value', () => {
  const labels = { a: 'foo', b: 'bar' }
  check({ action: 'keep', source_labels: ['a'], regex: 'foo' }, labels, labels)
  check({ action: 'keep', source_labels: ['a'], regex: 'fo' }, labels, undefined)
  check({ action: 'keep', source_labels: ['a'], regex: 'oo' }, labels, undefined)
  check({ action: 'keep', source_labels: ['a'], regex: 'x|foo' }, labels, labels)
  check({ action: 'keep', source_labels: ['a', 'b'], regex: 'foo;bar' }, labels, labels)
  check({ action: 'keep', source_labels: ['a', 'b'], regex: 'foobar', separator: '' }, labels, labels)
  check({ action: 'keep', source_labels: ['none'], regex: '' }, labels, labels)
  check({ action: 'keep', source_labels: ['none'], regex: '.+' }, labels, undefined)
  check({ action: 'keep', source_labels: ['a'] }, labels, labels)
  check({ action: 'keep', regex: '' }, labels, labels)
  check({ action: 'keep', source_labels: ['a'], regex: '.*o' }, { a: 'f\no' }, { a: 'f\no' })
  check({ action: 'drop', source_labels: ['a'], regex: 'foo' }, labels, undefined)
  check({ action: 'drop', source_labels: ['a'], regex: 'f' }, labels, labels)
  check({ action: 'drop', source_labels: ['a'], regex: '.*o.*' }, labels, undefined)
  check({ action: 'DROP', source_labels: ['a'] }, labels, undefined)
  check(
    [
      { action: 'drop', source_labels: ['a'], regex: 'x' },
      { action: 'keep', source_labels: ['b'], regex: 'bar' },
      { target_label: 'a', replacement: 'x' },
    ],
    labels,
    { a: 'x', b: 'bar' },
  )
})

test('keepequal and dropequal compare labels', () => {
  const labels = { port: '80', wanted: '80', other: '81' }
  check({ action: 'keepequal', source_labels: ['port'], target_label: 'wanted' }, labels, labels)
  check({ action: 'keepequal', source_labels: ['port'], target_label: 'other' }, labels, undefined)
  check({ action: 'keepequal', source_labels: ['none'], target_label: 'nothing' }, labels, labels)
  check({ action: 'keepequal', source_labels: ['port', 'wanted'], target_label: 'x' }, { x: ';' }, { x: ';' })
  check({ action: 'dropequal', source_labels: ['port'], target_label: 'wanted' }, labels, undefined)
  check({ action: 'dropequal', source_labels: ['port'], target_label: 'other' }, labels, labels)
  check({ action: 'dropequal', source_labels: [], target_label: 'none' }, labels, undefined)
})

test('hashmod has the numbers of Prometheus', () => {
  const rule = { action: 'hashmod', source_labels: ['c'], target_label: 'd' }
  // From its own tests.
  check({ ...rule, modulus: 1000 }, { c: 'baz' }, { c: 'baz', d: '976' })
  check({ ...rule, modulus: 1000 }, { c: 'foo\nbar' }, { c: 'foo\nbar', d: '734' })
  check({ ...rule, modulus: 1 }, { c: 'x' }, { c: 'x', d: '0' })
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', 'Z', '0', 'é', '😀', '\0', ';'), maxLength: 40 }),
      fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
      (text, modulus) => {
        const last = createHash('md5').update(text).digest('hex').slice(16)
        const want = String(BigInt(`0x${last}`) % BigInt(modulus))
        const map = new Map([['c', text]])
        relabel([compiled({ ...rule, modulus })], map)
        assert.equal(map.get('d'), want)
      },
    ),
  )
})

test('labelmap, labeldrop and labelkeep go by the names', () => {
  const labels = { a: 'foo', b1: 'bar', b2: 'baz' }
  check({ action: 'labelmap', regex: '(b.*)', replacement: 'bar_${1}' }, labels, {
    ...labels,
    bar_b1: 'bar',
    bar_b2: 'baz',
  })
  check({ action: 'labelmap', regex: '__meta_(my.*)' }, { __meta_my_x: '1' }, { __meta_my_x: '1', my_x: '1' })
  check({ action: 'labelmap', regex: 'b' }, labels, labels)
  check({ action: 'labelmap', regex: 'b(.)', replacement: 'a' }, labels, { ...labels, a: 'baz' })
  check({ action: 'labelmap', regex: 'b(.)()', replacement: '$2' }, labels, labels)
  check(
    { action: 'labelmap', regex: '(.*)', replacement: '${1}x' },
    { a: '1', ax: '2' },
    { a: '1', ax: '1', axx: '2' },
  )
  check({ action: 'labelmap', regex: 'a|(b)1', replacement: 'k.$1' }, labels, {
    ...labels,
    'k.': 'foo',
    'k.b': 'bar',
  })
  check({ action: 'labeldrop', regex: 'b.*' }, labels, { a: 'foo' })
  check({ action: 'labeldrop', regex: 'b' }, labels, labels)
  check({ action: 'labeldrop', regex: '(a|b1)' }, labels, { b2: 'baz' })
  check({ action: 'labelkeep', regex: 'b.*' }, labels, { b1: 'bar', b2: 'baz' })
  check({ action: 'labelkeep', regex: 'none' }, labels, {})
  check({ action: 'labelkeep' }, labels, labels)
})

test('cases are changed as Go changes them', () => {
  const lower = (text: string, want: string) =>
    check({ action: 'lowercase', source_labels: ['a'], target_label: 'a' }, { a: text }, { a: want })
  const upper = (text: string, want: string) =>
    check({ action: 'uppercase', source_labels: ['a'], target_label: 'a' }, { a: text }, { a: want })
  lower('bAr123Foo', 'bar123foo')
  lower('ÉΑΣ', 'éας'.replace('ς', 'σ'))
  lower('İ', 'i')
  lower('ẞ', 'ß')
  upper('bAr123Foo', 'BAR123FOO')
  upper('éß', 'Éß')
  upper('ﬁŉ', 'ﬁŉ')
  upper('𐐨', '𐐀')
  check(
    { action: 'lowercase', source_labels: ['A', 'b'], target_label: 'c', separator: 'X' },
    { A: 'A', b: 'B' },
    { A: 'A', b: 'B', c: 'axb' },
  )
  check({ action: 'uppercase', source_labels: ['none'], target_label: 'a' }, { a: 'x' }, {})
})

test('a rule that cannot be says where and what to do', () => {
  const refused = (written: unknown, ...want: (readonly [field: string, words: RegExp])[]) => {
    const faults = compileRelabel(written) as readonly RelabelFault[]
    assert.ok(Array.isArray(faults), JSON.stringify(written))
    assert.deepEqual(
      faults.map(({ field }) => field),
      want.map(([field]) => field),
      JSON.stringify(faults),
    )
    for (const [i, [, words]] of want.entries())
      assert.match(`${faults[i]!.message}: ${faults[i]!.hint}`, words)
  }
  refused('x', ['', /not a relabelling rule/])
  refused(null, ['', /not a relabelling rule/])
  refused([], ['', /not a relabelling rule/])
  refused({ target_labels: 'x', target_label: 'x' }, [
    'target_labels',
    /unknown key of a relabelling rule: use target_label/,
  ])
  refused({ action: 'kep' }, ['action', /use keep/], ['target_label', /requires a label name/])
  refused({ action: '', target_label: 'a' }, ['action', /"" is not an action: use one of replace, keep/])
  refused({ action: null, target_label: 'a' }, ['action', /null is not an action/])
  refused({ action: 'constructor', target_label: 'a' }, ['action', /not an action/])
  refused({}, ['target_label', /replace requires a label name/])
  refused({ target_label: '' }, ['target_label', /replace requires/])
  refused({ target_label: ['a'] }, ['target_label', /is not text/], ['target_label', /replace requires/])
  refused({ target_label: 'a', regex: '(' }, ['regex', /unterminated group.*RE2/])
  refused({ target_label: 'a', regex: '(?=a)' }, ['regex', /lookaround/])
  refused({ target_label: 'a', regex: 'a)|(b' }, ['regex', /invalid expression/])
  refused({ target_label: 'a', source_labels: 'a' }, ['source_labels', /not a list.*use \[/])
  refused({ target_label: 'a', source_labels: [''] }, ['source_labels', /"" is not a label name/])
  refused({ target_label: 'a', source_labels: [1] }, ['source_labels', /1 is not a label name/])
  refused({ target_label: 'a', source_labels: Array(257).fill('a') }, ['source_labels', /256 names/])
  refused({ action: 'hashmod', target_label: 'a' }, ['modulus', /above 0.*number of shards/])
  refused({ action: 'hashmod', target_label: 'a', modulus: 0 }, ['modulus', /above 0/])
  refused({ action: 'hashmod', target_label: 'a', modulus: -1 }, ['modulus', /not a whole number/])
  refused({ action: 'hashmod', target_label: 'a', modulus: 1.5 }, ['modulus', /not a whole number/])
  refused({ action: 'hashmod', target_label: 'a', modulus: '4' }, ['modulus', /"4" is not a whole number/])
  refused({ action: 'hashmod', modulus: 4 }, ['target_label', /hashmod requires/])
  refused({ action: 'lowercase' }, ['target_label', /lowercase requires/])
  refused({ action: 'uppercase', target_label: 'a', replacement: 'x' }, [
    'replacement',
    /does not allow a replacement: remove/,
  ])
  refused({ action: 'keepequal', target_label: 'a', regex: 'x' }, ['regex', /source_labels and target_label/])
  refused({ action: 'dropequal', target_label: 'a', separator: '-' }, ['separator', /dropequal allows only/])
  refused({ action: 'labeldrop', source_labels: ['a'] }, ['source_labels', /allows only regex/])
  refused({ action: 'labelkeep', target_label: 'a' }, ['target_label', /allows only regex/])
  refused({ action: 'labeldrop', regex: 'a', modulus: 3 }, ['modulus', /allows only regex/])
  refused({ action: 'labelmap', replacement: '' }, ['replacement', /labelmap requires a name/])
  refused({ target_label: 'a\ud800' }, ['target_label', /not text/], ['target_label', /replace requires/])
})

test('no rule takes long or grows without end, whatever the values are', () => {
  const started = performance.now()
  const long = 'a'.repeat(100_000)
  assert.equal(after({ action: 'keep', source_labels: ['a'], regex: '((a+)+)+b' }, { a: long }), undefined)
  const doubled = { source_labels: ['a'], target_label: 'a', replacement: '$1$1' }
  const grown = after(Array(64).fill(doubled), { a: 'abc' })!.a!
  assert.ok(grown.length <= 1024 * 1024, String(grown.length))
  const joined = after({ source_labels: Array(256).fill('a'), target_label: 'b' }, { a: long })!.b!
  assert.ok(joined.length <= 1024 * 1024)
  const map = { action: 'labelmap', regex: '(.*)' }
  const copied = after(
    [...Array(40).keys()].map(i => ({ ...map, replacement: `${i}_$1` })),
    { a: '1' },
  )!
  assert.ok(Object.keys(copied).length <= 4096)
  assert.ok(performance.now() - started < 30_000)
})
