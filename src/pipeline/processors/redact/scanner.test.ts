import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { areFourHex, beginsWord, is, isDigit, isHex, isUpper, margin, Units, word } from './characters.ts'
import type { Detector, Find } from './detector.ts'
import { detectors } from './detectors.ts'
import { Scanner, type ScanRule } from './scanner.ts'
import { builtIn } from './settings.ts'
import { Stretch } from './stretch.ts'

const capacity = 1 << 20

function scannerOf(rules: readonly ScanRule[]): Scanner {
  return new Scanner(rules, { capacity, redactedAt: () => 0, nowMs: () => performance.now() })
}

/**
 * Least milliseconds of five scans at most, as many as it takes to come below `enough`: another program may have had
 * the processor.
 */
function quickest(scanner: Scanner, text: string, enough = 0): number {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 5 && least >= enough; i++) {
    const start = performance.now()
    scanner.scan(text, 0)
    least = Math.min(least, performance.now() - start)
  }
  return least
}

/** Pieces that, again and again, make detectors look far for nothing. */
const nasty = [
  'a',
  '@',
  'a@',
  'a@a.',
  'a.a.a.a@',
  '%40',
  'a@b-',
  `${'a'.repeat(63)}.`,
  '1',
  '1 ',
  '1-',
  '1.',
  '4111 ',
  '4111-1111-',
  '411111111111',
  '+1',
  '+49 (',
  '(1',
  '(212) ',
  'phone 1',
  'tel tel tel tel tel tel tel 1234567 ',
  'DE89',
  'DE89 3704 ',
  'eyJ',
  'eyJ.',
  ' eyJ.',
  '%20eyJ',
  'eyJhbGciOiJIUzI1NiJ9.',
  ':',
  '::',
  'a:',
  '1:2::',
  'fe80::1%',
  '://',
  'x://a:b',
  'x://@@@@@:',
  '=',
  'password=',
  'secret=',
  'cookie:',
  'password="',
  'password=\\"',
  '"password":"\\\\',
  'token: [',
  'Cookie: a=',
  '--password ',
  '<password>',
  '-',
  '-----BEGIN ',
  '-----BEGIN PRIVATE KEY-----',
  '-----END',
  'Bearer ',
  'ghp_',
  'sk-sk-',
  'AKIA',
  'SG.SG.',
  '\\n1',
  '%201',
  '\0',
  'é@',
  '😀',
]

test('no text makes the built-in types look for long', () => {
  const size = soak ? capacity : capacity >> 3
  for (const types of [...builtIn.map(type => [type]), builtIn]) {
    const scanner = scannerOf(types.map(type => ({ type, pattern: '' })))
    for (const piece of nasty) {
      const text = piece.repeat(Math.ceil(size / piece.length)).slice(0, size)
      const took = quickest(scanner, text, 5000)
      assert.ok(took < 5000, `${types} took ${took} ms for ${JSON.stringify(piece)}`)
      assert.equal(scanner.reached, size)
    }
  }
})

test('values that stand within each other are looked at once', () => {
  const scanner = scannerOf(builtIn.map(type => ({ type, pattern: '' })))
  for (const piece of ['secret=', 'cookie:', '/secret=']) {
    // The first took 3 s and more.
    assert.ok(quickest(scanner, piece.repeat(capacity / piece.length), 2000) < 2000, piece)
  }
})

test('twice the text takes about twice the time', () => {
  const scanner = scannerOf(builtIn.map(type => ({ type, pattern: '' })))
  for (const piece of nasty) {
    const text = piece.repeat(Math.ceil((capacity >> (soak ? 1 : 4)) / piece.length / 2))
    const [once, twice] = [quickest(scanner, text), quickest(scanner, text + text)]
    // A collection may cost some milliseconds; what is quadratic costs seconds here.
    assert.ok(twice < 4 * once + 50, `${JSON.stringify(piece)}: ${once} and ${twice} ms`)
  }
})

test('no pattern of a user stops the agent, whatever the text', () => {
  const patterns = [
    '(a+)+$',
    '[a-z]+@',
    '[a-z ]{1,64}@',
    '(a|a)*b',
    '(a|aa)+$',
    '([a-z]+)*=',
    '(\\w+\\s?)+$',
    '^(\\w+\\s?)+!',
    '(.*a){12}',
    '(.*)(.*)(.*)(.*)x',
    'a.*b|a',
    'a[^b]*b|a',
    '(a?){16}a{16}',
    '\\d+\\d+\\d+x',
    '([^,]*,)+;',
    '(x+x+)+y',
    '\\s+$',
    '.+@.+\\..+',
    '[\\w.]+@[\\w.]+\\.[a-z]+',
    '(?i)(a+)+b',
    '(a*a*)*b+',
    '(a{1,20}){1,20}b',
    '\\b(\\w+)+\\b!',
    '(.|\\s)+z',
  ]
  const size = 1 << 16
  const texts = ['a', 'ab', 'a ', 'aaaaaaaaaaaaaaaa!', '1', ' ', 'x', ',', 'a@', 'a.a@a.'].map(piece =>
    piece.repeat(Math.ceil(size / piece.length)).slice(0, size),
  )
  for (const pattern of patterns) {
    const scanner = scannerOf([{ type: 'regex', pattern }])
    for (const text of texts) {
      const took = quickest(scanner, text, 5000)
      assert.ok(took < 5000, `${pattern} took ${took} ms on ${text.slice(0, 20)}`)
    }
  }
})

test('where a pattern finds too much, the scan tells how far it came', () => {
  const scanner = scannerOf([{ type: 'regex', pattern: '[ab]' }])
  assert.equal(scanner.scan('ab'.repeat(5000), 0), 4096)
  assert.equal(scanner.reached, 4096)
  scanner.scan('ab', 0)
  assert.equal(scanner.reached, 2)
})

test('what is too long to be searched with a large pattern counts as not looked into', () => {
  const scanner = scannerOf([{ type: 'regex', pattern: '(?:[a-z]{1,9}){1,90}@' }])
  assert.equal(scanner.scan(`x@${' '.repeat(200_000)}y@`, 0), 1)
  assert.ok(scanner.reached > 1000 && scanner.reached < 100_000, String(scanner.reached))
})

test('a text without the literal that a pattern needs is not searched', () => {
  const scanner = scannerOf([{ type: 'regex', pattern: 'EMP-\\d+' }])
  assert.equal(scanner.scan('emp-12', 0), 0)
  assert.equal(scanner.scan('EMP-12, EMP-3', 0), 2)
  assert.deepEqual([scanner.starts[1], scanner.ends[1], scanner.rules[1]], [8, 13, 0])
})

/** All matches, as `type start end`: every detector is called at each of its triggers, and at each run of digits. */
function matchesOf(text: string, hints: number, units: Units): string[] {
  const end = units.fill(text)
  const { bytes } = units
  const floors = new Map<Detector, number>()
  const found: string[] = []
  const [values, cookies] = [new Stretch(), new Stretch()]
  const find: Find = {
    ...{ type: 'regex', start: 0, end: 0, run: 0, hints },
    ...{ values, cookies, redactedAt: () => 0 },
  }
  const ask = (at: number, run: number, isAsked: (detector: Detector) => boolean) => {
    for (const detector of detectors) {
      if (!isAsked(detector) || at < (floors.get(detector) ?? 0)) continue
      find.run = run
      if (!detector.find(bytes, at, find)) continue
      floors.set(detector, find.end)
      const type = detector.types.length === 1 ? detector.types[0] : find.type
      found.push(`${type} ${find.start - margin} ${find.end - margin}`)
    }
  }
  for (let at = margin; at < end; at++) {
    const character = String.fromCharCode(bytes[at]!)
    if (!isDigit(bytes[at])) {
      ask(at, 0, ({ triggers }) => triggers.includes(character))
      continue
    }
    const from = at
    let to = at
    while (isDigit(bytes[to])) to++
    const wordTo = () => {
      while (is(bytes[to], word)) to++
    }
    const before = bytes[from - 1]!
    const escaped = before === 37 ? 2 : bytes[from - 2] === 37 && isHex(before) ? 1 : 0
    let start = from
    if (escaped > 0) start += to - from > escaped ? escaped : 0
    else if (is(before, word)) {
      if (isUpper(before) && isUpper(bytes[from - 2]))
        ask(from, to - from, ({ afterCapitals }) => afterCapitals === true)
      if (!beginsWord(bytes, from)) {
        if (before === 117 && bytes[from - 2] === 92 && areFourHex(bytes, from)) at = from + 3
        else {
          wordTo()
          at = to - 1
        }
        continue
      }
    } else if (is(bytes[to], word)) {
      wordTo()
      at = to - 1
      continue
    }
    const next = String.fromCharCode(bytes[to]!)
    const run = Math.min(to - start, 21)
    ask(start, run, ({ runs }) => runs?.(run, '.- /)'.includes(next) ? next : '') === true)
    at = to - 1
  }
  return found.sort()
}

test('the quick way over a text finds what calls of all detectors everywhere find', () => {
  const pieces = builtIn.flatMap(type =>
    readFileSync(`test/fixtures/redact/${type}.txt`, 'utf8')
      .split('\n')
      .map(line => line.slice(2).replaceAll('<+>', '').replace(/[⟦⟧]/g, '')),
  )
  const date = fc.constantFrom('2026-11-20', '2026-11-20T', '2026-11-20 ', '2026-11-20T23:05:12.5Z', '2026-1')
  const parts = fc.oneof(
    fc.constantFrom(...nasty),
    fc.constantFrom(...pieces),
    date,
    fc.stringMatching(/^[-0-9 .:/+()T]{1,20}$/),
    fc.stringMatching(/^[-_=:>@%+(\\uABJSTnyeskt0-9 ]{1,8}$/),
    fc.string({ unit: 'binary', maxLength: 6 }),
  )
  const text = fc.array(parts, { maxLength: 10 }).map(each => each.join(''))
  const units = new Units(1 << 16)
  const scanner = scannerOf(builtIn.map(type => ({ type, pattern: '' })))
  const alone = builtIn.map(type => scannerOf([{ type, pattern: '' }]))
  const property = fc.property(text, fc.integer({ min: 0, max: 3 }), (text, hints) => {
    const found = ({ starts, ends, rules, count }: Scanner, type?: string) =>
      Array.from({ length: count }, (_, i) => `${type ?? builtIn[rules[i]!]} ${starts[i]} ${ends[i]}`).sort()
    const all = matchesOf(text, hints, units)
    scanner.scan(text, hints)
    assert.deepEqual(found(scanner), all)
    for (const [i, one] of alone.entries()) {
      one.scan(text, hints)
      const type = builtIn[i]!
      assert.deepEqual(
        found(one, type),
        all.filter(match => match.startsWith(`${type} `)),
      )
    }
  })
  const afterDate = [
    '.1.2.3',
    ' 1.2.3.4',
    ' 078-05-1120',
    'T1.2.3.4',
    '1-111',
    '-4111-1111-1111-1111',
    ' (212) 555-0100',
  ]
  const examples = afterDate.map((after): [string, number] => [`tel 2026-11-20${after}`, 0])
  fc.assert(property, { numRuns: soak ? 50_000 : 2000, examples })
})

test('a text that only just has room is scanned where its characters are', () => {
  const key = 'AKIAQWERTYUIOPASDFGH'
  for (let capacity = 60; capacity < 64; capacity++) {
    const rules: readonly ScanRule[] = [{ type: 'api_key', pattern: '' }]
    const scanner = new Scanner(rules, { capacity, redactedAt: () => 0, nowMs: () => 0 })
    for (const wide of ['\u00e9', '\u4e2d', '\u{1f600}'])
      for (let before = 1; before < 5; before++)
        for (let length = capacity - 6; length <= capacity; length++) {
          const begin = `${wide.repeat(before)} `
          const text = `${begin}${key} `.padEnd(length - wide.length, '.') + wide
          assert.equal(scanner.scan(text, 0), 1)
          assert.deepEqual([scanner.starts[0], scanner.ends[0]], [begin.length, begin.length + key.length])
        }
  }
})

test('a flag at the end of a text has no value from the text before', () => {
  const scanner = new Scanner([{ type: 'password', pattern: '' }], {
    capacity: 64,
    redactedAt: () => 0,
    nowMs: () => 0,
  })
  for (const length of [40, 64]) {
    scanner.scan('hunter2!'.repeat(8), 0)
    assert.equal(scanner.scan('--password'.padStart(length), 0), 0)
  }
  assert.equal(scanner.scan('--password\0hunter2!', 0), 1)
})
