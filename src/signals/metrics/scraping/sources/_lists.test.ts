import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { soak } from '../../../../../test/helpers/soak.ts'
import { isObject } from '../../../../foundation/lib/json-fields.ts'
import { jsonElements } from './_json-list.ts'
import { yamlElements } from './_yaml-list.ts'

const numRuns = soak ? 1_000 : 25
/** Beyond this a list is taken apart. */
const longChars = 70_000

async function all(elements: AsyncIterable<unknown>): Promise<unknown[] | string> {
  const found: unknown[] = []
  try {
    for await (const each of elements) found.push(each)
  } catch (error) {
    return (error as Error).message
  }
  return found
}

const fromJson = (text: string) => all(jsonElements(Buffer.from(text)))
const fromYaml = (text: string) => all(yamlElements(text))

const words = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('- a', '[', '"', '\\', '# x', '\n- b', '&a', '*a', 'a?b&c=*', '!a', '<<'),
)
/** V8 13.6 takes a key of one escaped character for one of backslashes, where it has met that (`JSON.parse`). */
const names = words.filter(name => !/^["\\]+$/.test(name))
const groups = fc.array(
  fc.record({
    targets: fc.array(words, { maxLength: 5 }),
    labels: fc.dictionary(names, words, { maxKeys: 5 }),
  }),
  { minLength: 1, maxLength: 20 },
)

/** The same again until it is long. */
function lengthened<Group>(list: readonly Group[], chars: number): Group[] {
  const times = Math.ceil(chars / JSON.stringify(list).length)
  return Array.from({ length: times }, () => list).flat()
}

test('a long list in JSON is what JSON.parse makes of it', async () => {
  await fc.assert(
    fc.asyncProperty(groups, fc.constantFrom(0, 2), async (list, indent) => {
      const long = lengthened(list, longChars)
      assert.deepEqual(await fromJson(JSON.stringify(long, null, indent)), JSON.parse(JSON.stringify(long)))
    }),
    { numRuns },
  )
})

test('a long list in YAML is what the parser makes of the whole', async () => {
  await fc.assert(
    fc.asyncProperty(groups, async list => {
      const long = lengthened(list, 20_000)
      // Without quotes the key `<<` merges, and the library writes none.
      const defaultKeyType = list.some(({ labels }) => '<<' in labels) ? 'QUOTE_DOUBLE' : 'PLAIN'
      const text = stringify(long, { aliasDuplicateObjects: false, defaultKeyType })
      assert.deepEqual(await fromYaml(`# first\n\n${text}`), JSON.parse(JSON.stringify(long)))
    }),
    { numRuns },
  )
})

test('bytes that are no list end with a reason', async () => {
  await fc.assert(
    fc.asyncProperty(
      groups,
      fc.nat(),
      fc.constantFrom('', '[', ']', '{', '}', '"', ',', '7', '\\'),
      async (list, at, put) => {
        const text = JSON.stringify(lengthened(list, longChars))
        const place = at % text.length
        const broken = Buffer.from(text.slice(0, place) + put + text.slice(place + 1)).toString()
        let want: unknown
        try {
          want = JSON.parse(broken)
        } catch {
          // Then there is a reason.
        }
        const found = await fromJson(broken)
        if (typeof found !== 'string') assert.ok(isDeepStrictEqual(found, want), 'it says what is not there')
        else assert.ok(!Array.isArray(want) || !want.every(isObject), found)
        await fromYaml(broken.slice(0, 2_000))
      },
    ),
    { numRuns },
  )
})

test('a large list of URLs in YAML is divided, and what cannot be is not read at once', async () => {
  const groups = Array.from(
    { length: 20_000 },
    (_, i) => `- targets: [h${i}]\n  labels: {u: 'x?a&b=*'}\n`,
  ).join('')
  assert.equal((await fromYaml(groups)).length, 20_000)
  const refused = /^the part from line 1 is too large; use JSON/
  assert.match(String(await fromYaml(`- &a {targets: [x]}\n${groups}`)), refused)
  assert.match(String(await fromYaml(`[${'{targets: [x]},'.repeat(50_000)}]`)), refused)
})

test('depth and size of an element have their bounds', async () => {
  const deep = (depth: number) => `[${'['.repeat(depth)}${']'.repeat(depth)},${'{},'.repeat(longChars)}{}]`
  assert.equal(typeof (await fromJson(deep(99))), 'object')
  assert.match(String(await fromJson(deep(100))), /nested more than 100 deep/)
  const large = `[{},{"targets":["${'x'.repeat(4 * 1024 * 1024)}"]}]`
  assert.match(
    String(await fromJson(large)),
    /^element 2 of the list is larger than 4194304 bytes; split it$/,
  )
})

test('a large list leaves time for others', async () => {
  const json = JSON.stringify(
    Array.from({ length: 50_000 }, (_, i) => ({ targets: [`h${i}:1`], labels: { a: 'b', c: String(i) } })),
  )
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  assert.equal((await fromJson(json)).length, 50_000)
  delay.disable()
  // It would take some 40 ms at once; how long a turn takes on a busy machine is not for a test to say.
  assert.ok(delay.count > 3, `there were ${delay.count} turns`)
})

test('a list that is too much for the parser of YAML is refused before it', async () => {
  const many = 500_000
  for (const text of ['['.repeat(many), `- ["${'\\q'.repeat(many / 2)}"]`, `- [${','.repeat(many)}]`])
    await assert.rejects(async () => {
      for await (const _ of yamlElements(text));
    }, /^Error: it has more than 200,000 YAML tokens in the part from line 1; make it smaller$/)
})
