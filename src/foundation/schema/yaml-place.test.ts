import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { soak } from '../../../test/helpers/soak.ts'
import { problemAt, type Report } from './problem.ts'
import { fileSource, looseScalar, type Place, type Value } from './value.ts'
import { collectionOf, parseYaml } from './yaml-place.ts'

const numRuns = soak ? 20_000 : 200

interface Told {
  readonly value: Value | undefined
  readonly messages: string[]
  readonly places: Place[]
}

function read(text: string, env?: Record<string, string>): Told {
  const messages: string[] = []
  const places: Place[] = []
  const report: Report = {
    secret: false,
    problem: (place, _key, message) => {
      messages.push(message)
      places.push(place)
    },
  }
  const value = parseYaml(fileSource('file', text), env === undefined ? {} : { env }, report)
  return { value, messages, places }
}

function plain(value: Value): unknown {
  if (value.type === 'scalar') return value.value
  if (value.type === 'list') return value.items.map(plain)
  return Object.fromEntries(value.entries.map(({ key, value }) => [key, plain(value)]))
}

function* all(value: Value): Generator<Value> {
  yield value
  if (value.type === 'list') for (const item of value.items) yield* all(item)
  if (value.type === 'map') for (const entry of value.entries) yield* all(entry.value)
}

/** Pieces of which files are made, and some that break them. */
const piece = fc.oneof(
  fc.constantFrom(
    'a',
    'key',
    '- ',
    ': ',
    ':',
    '\n',
    '\n  ',
    '\t',
    '"',
    "'",
    '[',
    ']',
    '{',
    '}',
    ', ',
    '&a ',
    '*a',
    '# ',
  ),
  fc.constantFrom(
    '| \n',
    '>-\n',
    '? ',
    '!!int ',
    '!x ',
    '---\n',
    '...\n',
    '%YAML 1.1\n',
    '~',
    '0x1f',
    '1e3',
    '\\',
    '${',
    '}',
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
)
const broken = fc.array(piece, { maxLength: 40 }).map(parts => parts.join(''))

test('whatever a file holds, it is read or told what is wrong, at a place that is there', () => {
  fc.assert(
    fc.property(broken, text => {
      const { value, messages, places } = read(text, {})
      assert.ok(value !== undefined || messages.length > 0)
      assert.ok(messages.every(message => message !== '' && message.length < 1000))
      const found = value === undefined ? [] : [...all(value)].map(({ place }) => place)
      for (const { start, end } of [...places, ...found])
        assert.ok(
          start >= 0 && start <= end && end <= text.length + 1,
          `${start} to ${end} of ${text.length}`,
        )
    }),
    { numRuns },
  )
})

test('what is wrong is told without what stands there, which may be a password', () => {
  const secret = 'hunter2'
  fc.assert(
    fc.property(broken, fc.nat(), (text, at) => {
      const where = at % (text.length + 1)
      const { messages } = read(text.slice(0, where) + secret + text.slice(where))
      assert.ok(!messages.some(message => message.includes(secret)), messages.join('\n'))
    }),
    { numRuns },
  )
})

test('what a program writes is read back the same', () => {
  const json = fc.jsonValue({ maxDepth: 4 }).map(value => JSON.parse(JSON.stringify(value)) as unknown)
  fc.assert(
    fc.property(json, fc.boolean(), (value, isJson) => {
      const told = read(isJson ? JSON.stringify(value) : stringify(value))
      assert.deepEqual(told.messages, [])
      assert.deepEqual(plain(told.value!), value)
    }),
    { numRuns },
  )
})

test('neither depth nor aliases cost more than the file is large', () => {
  const deep = read('['.repeat(100_000))
  assert.match(deep.messages.join(), /nested too deep/)
  const rows = Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}]`)
  assert.match(read(['a0: &a0 x', ...rows].join('\n')).messages.join(), /aliases expand to more than/)
})

test('a variable for a list or a map is one, or told what is wrong', () => {
  fc.assert(
    fc.property(broken, fc.constantFrom('list', 'map'), (text, want) => {
      const messages: string[] = []
      const report: Report = { secret: false, problem: (_place, _key, message) => messages.push(message) }
      const value = collectionOf(looseScalar('SVC_X', text), want, 'x', report)
      assert.ok(value.type !== 'scalar' || messages.length > 0 || /^\s*[[{]/.test(text))
    }),
    { numRuns },
  )
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z0-9./_-]{1,8}$/), { minLength: 1 }), items => {
      const value = collectionOf(looseScalar('SVC_X', items.join(', ')), 'list', 'x', {
        secret: false,
        problem: (_place, _key, message) => assert.fail(message),
      })
      assert.deepEqual(plain(value), items)
    }),
    { numRuns },
  )
})

test('what is too much for the parser, or stands in one long line, is refused at once', () => {
  const many = 1 << 20
  const began = performance.now()
  for (const text of [
    '['.repeat(many),
    `"${'\\q'.repeat(many / 2)}"`,
    '%a\n'.repeat(many / 4),
    '- '.repeat(many / 2),
  ])
    assert.match(read(text).messages.join(), /^cannot read the text: it has more than 200,000 YAML tokens/)
  const long = `a: "${'b'.repeat(many)}" c`
  assert.match(
    problemAt({ source: fileSource('file', long), start: 0, end: 1 }, '', '').sourceLine,
    /^a: "b+" c$/,
  )
  // With a regular expression that begins again at each character it is minutes.
  assert.ok(performance.now() - began < 20_000)
})
