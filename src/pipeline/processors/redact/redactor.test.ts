import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { type Mode, Redactor, unscanned } from './redactor.ts'
import { builtIn, type RuleType } from './settings.ts'

interface Made {
  readonly type: RuleType
  readonly pattern?: string
  readonly mode?: Mode
  readonly replacement?: string
}

function redactorOf(rules: readonly Made[], maxBytes = 65_536): Redactor {
  const made = rules.map(({ type, pattern = '', mode = 'replace', replacement = '[REDACTED]' }) => ({
    name: type,
    type,
    pattern,
    mode,
    replacement,
    counts: { redacted: 0, found: 0 },
  }))
  return new Redactor(made, {
    maxBytes,
    key: Buffer.from('0123456789abcdef'),
    nowMs: () => performance.now(),
  })
}

const allTypes = (mode: Mode = 'replace', replacement = '[REDACTED]'): Made[] =>
  builtIn.map(type => ({ type, mode, replacement }))

const isWellFormed = (text: string) =>
  !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text)

/** What the fixtures find, as pieces of which texts are made. */
const pieces = builtIn.flatMap(type =>
  readFileSync(`test/fixtures/redact/${type}.txt`, 'utf8')
    .split('\n')
    .map(line => line.slice(2).replaceAll('<+>', '').replace(/[⟦⟧]/g, ''))
    .filter(line => line !== ''),
)
const glue = [
  '',
  ' ',
  '=',
  ':',
  '@',
  '-',
  '+',
  '.',
  '"',
  '\\',
  '%20',
  '\n',
  '\0',
  '😀',
  'é',
  '1',
  'a',
  '_',
  '://',
  'password=',
  'token: ',
]
const texts = fc
  .array(
    fc.oneof(
      fc.constantFrom(...pieces),
      fc.constantFrom(...glue),
      fc.constantFrom('[REDACTED]', '[HASH:0123456789abcdef]', unscanned, '[HASH:'),
      fc.string({ unit: 'binary', maxLength: 12 }),
      fc.stringMatching(/^[-+0-9 .:@]{1,24}$/),
    ),
    { maxLength: 12 },
  )
  .map(parts => parts.join(''))

const ways: readonly (readonly [string, readonly Made[]])[] = [
  ['replaced', allTypes()],
  ['replaced by a word', allTypes('replace', 'x')],
  ['replaced by nothing', allTypes('replace', '')],
  ['replaced by what is personal itself', allTypes('replace', 'nobody@example.com')],
  ['replaced by words', allTypes('replace', '<hidden value>')],
  ['replaced by an assignment', allTypes('replace', 'password=secret')],
  ['hashed', allTypes('hash')],
  [
    'hashed, with patterns that fit the hashes',
    [...allTypes('hash'), { type: 'regex', pattern: '[0-9a-f]{4}', mode: 'hash' }],
  ],
  [
    'replaced each in its way',
    builtIn.map((type, i) => ({ type, mode: i % 2 ? 'hash' : 'replace', replacement: `<${type}>` })),
  ],
  [
    'replaced, by patterns',
    [
      { type: 'regex', pattern: 'a.{3}' },
      { type: 'regex', pattern: '\\[\\w' },
      { type: 'regex', pattern: '[0-9]+' },
    ],
  ],
]

for (const [name, rules] of ways) {
  test(`what is ${name} once stays as it is the second time, and no character is parted`, () => {
    const redactor = redactorOf(rules)
    const property = fc.property(texts, text => {
      const once = redactor.text(text, 0)
      assert.equal(redactor.text(once, 0), once)
      if (isWellFormed(text)) assert.ok(isWellFormed(once), JSON.stringify(once))
    })
    fc.assert(property, { numRuns: soak ? 20_000 : 1500 })
  })
}

test('redacting twice counts once', () => {
  const redactor = redactorOf(allTypes())
  const once = redactor.text('password=hunter2 bob@example.com 4242424242424242', 0)
  const counts = () => redactor.rules.map(rule => rule.counts.redacted).reduce((sum, count) => sum + count)
  assert.equal(counts(), 3)
  redactor.text(once, 0)
  assert.equal(counts(), 3)
})

test('the same string comes back where nothing is found', () => {
  const redactor = redactorOf(allTypes())
  for (const text of ['', 'GET', 'GET /api/v1/users/*', 'naïve café', '日本語', '😀'.repeat(50)])
    assert.equal(redactor.text(text, 0), text)
  assert.equal(redactor.isClean, true)
})

test('what overlaps is replaced as one', () => {
  const redactor = redactorOf([{ type: 'password' }, { type: 'credit_card' }, { type: 'email' }])
  assert.equal(redactor.text('password=4242 4242 4242 4242 ok', 0), 'password=[REDACTED] ok')
  assert.equal(redactor.text('password=bob@example.com', 0), 'password=[REDACTED]')
})

test('hashes are the same for the same text, differ by key, and are not the plain SHA-256', () => {
  const text = 'from bob@example.com to bob@example.com, eve@example.com'
  const redacted = redactorOf([{ type: 'email', mode: 'hash' }]).text(text, 0)
  const [one, two, three] = redacted.match(/\[HASH:[0-9a-f]{16}\]/g)!
  assert.equal(one, two)
  assert.notEqual(one, three)
  const rule = {
    name: 'e',
    type: 'email',
    pattern: '',
    mode: 'hash',
    replacement: '',
    counts: { redacted: 0, found: 0 },
  } as const
  const other = new Redactor([rule], { maxBytes: 1024, key: Buffer.from('another key 0123'), nowMs: () => 0 })
  assert.notEqual(other.text(text, 0), redacted)
})

test('of a long text only the beginning is looked into, and the rest goes', () => {
  const redactor = redactorOf(allTypes(), 1024)
  const long = `${'x '.repeat(512)}bob@example.com`
  assert.equal(redactor.text(long, 0), `${'x '.repeat(512)}${unscanned}`)
  assert.equal(redactor.truncated, 1)
  const body = 'x '.repeat(512)
  assert.equal(redactor.text(body, 0), body)
  const twice = redactor.text(long, 0)
  assert.equal(redactor.text(twice, 0), twice)
  assert.equal(redactor.truncated, 2)
})

test('what lies across the end of what is looked into is found as a whole', () => {
  const redactor = redactorOf(allTypes(), 1024)
  for (let before = 1000; before <= 1024; before++) {
    const text = `${'x'.repeat(before - 1)} bob@example.com and more ${'y'.repeat(1000)}`
    const redacted = redactor.text(text, 0)
    assert.ok(!redacted.includes('bob@ex') && redacted.endsWith(unscanned), redacted.slice(990))
    assert.equal(redactor.text(redacted, 0), redacted)
  }
})

test('the bound is in bytes of UTF-8 and does not part a pair of surrogates', () => {
  const redactor = redactorOf(allTypes(), 1024)
  assert.equal(redactor.text('é'.repeat(600), 0), 'é'.repeat(512) + unscanned)
  assert.equal(redactor.text('日'.repeat(600), 0), '日'.repeat(341) + unscanned)
  assert.equal(redactor.text('😀'.repeat(600), 0), '😀'.repeat(256) + unscanned)
  assert.equal(redactor.text(`a${'😀'.repeat(600)}`, 0), `a${'😀'.repeat(255)}${unscanned}`)
})

test('a replacement that makes the text longer than the bound is bounded too', () => {
  const redactor = redactorOf([{ type: 'email', replacement: 'z'.repeat(200) }], 1024)
  const redacted = redactor.text('a@b.io '.repeat(140), 0)
  assert.ok(redacted.length <= 1024 + unscanned.length + 1024, String(redacted.length))
  assert.equal(redactor.text(redacted, 0), redacted)
})

test('a body of a megabyte costs no more than its first 64 KiB', () => {
  const redactor = redactorOf(allTypes())
  for (const part of ['word ', '4111 1111 1111 1111 ', 'a@b.io ', '日本 ', 'password=hunter2 ']) {
    const redacted = redactor.text(part.repeat(Math.ceil(2 ** 20 / part.length)), 0)
    assert.ok(redacted.length <= 65_536 + unscanned.length + 512)
    assert.ok(redacted.endsWith(unscanned))
  }
})
