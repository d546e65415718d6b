// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in the file.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { expand } from './expand.ts'

const env = { HOST: 'db', EMPTY: '', NESTED: '${HOST}' }

test('references are replaced by variables', () => {
  const check = (text: string, want: string) => {
    const { text: got, error } = expand(text, env)
    assert.equal(error, '', text)
    assert.equal(got, want, text)
  }
  check('plain', 'plain')
  check('${HOST}', 'db')
  check('a-${HOST}:${HOST}!', 'a-db:db!')
  check('${EMPTY}', '')
  check('${EMPTY:-x}', 'x')
  check('${GONE:-x:y}', 'x:y')
  check('${GONE:-}', '')
  check('${HOST:?needed}', 'db')
  check('$HOST $ $$ {HOST}', '$HOST $ $$ {HOST}')
})

test('"$${" is a literal "${" and nothing is replaced twice', () => {
  const check = (text: string, want: string) => assert.equal(expand(text, env).text, want)
  check('$${HOST}', '${HOST}')
  check('$${HOST}${HOST}', '${HOST}db')
  check('${NESTED}', '${HOST}')
  check('$${', '${')
})

test('what cannot be expanded says why and how to fix it', () => {
  const check = (text: string, want: RegExp) => assert.match(expand(text, env).error, want)
  check('${GONE}', /GONE is not set; set it, or write "\$\{GONE:-default\}"/)
  check('${GONE:?tell me}', /: tell me$/)
  check('${GONE:?}', /GONE is not set/)
  check('${EMPTY:?}', /EMPTY is empty/)
  check('${', /the closing "}" is missing/)
  check('a{2}${2}', /literal/)
  check('${constructor}', /constructor is not set/)
  check('${file:relative}', /must begin with "\/"/)
  check('${file:/nonexistent}', /there is no such file/)
  check('${file:/dev/zero}', /not a regular file/)
  check('${file:/}', /not a regular file/)
})

test('a secret file is read without its last line break, marked as secret, and bounded', context => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-expand-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'token')
  writeFileSync(path, 's3cret\n')
  const result = expand(`Bearer \${file:${path}}`, {})
  assert.deepEqual(result, { text: 'Bearer s3cret', expanded: true, secrets: ['s3cret'], error: '' })
  writeFileSync(path, 'x'.repeat(64 * 1024 + 1))
  assert.match(expand(`\${file:${path}}`, {}).error, /larger than 64 KiB/)
  const pipe = join(directory, 'pipe')
  execFileSync('mkfifo', [pipe])
  assert.match(expand(`\${file:${pipe}}`, {}).error, /not a regular file/)
})

const numRuns = soak ? 20_000 : 300
const names = fc.constantFrom('HOST', 'EMPTY', 'NESTED', 'GONE', 'constructor', '__proto__')
const references = fc.oneof(
  names.map(name => `\${${name}}`),
  fc.tuple(names, fc.string({ maxLength: 8 })).map(([name, text]) => `\${${name}:-${text}}`),
  fc.constantFrom('$${', '$$', '${', '}', '${}', '${:-}', '${file:', '${HOST:?}', '$'),
  fc.string({ unit: 'binary', maxLength: 10 }),
)
const texts = fc.array(references, { maxLength: 12 }).map(parts => parts.join(''))

const escaped = (text: string) => text.replaceAll('${', () => '$${')

test('whatever a text holds, it is expanded or comes back as it is with what is wrong', () => {
  fc.assert(
    fc.property(texts, text => {
      const got = expand(text, env)
      assert.equal(got.error === '' || got.text === text, true)
      if (got.error !== '') assert.ok(got.error.length < 400 && !got.expanded, got.error)
      else if (!got.expanded) assert.equal(got.text, text.replaceAll('$${', '${'))
    }),
    { numRuns },
  )
})

test('what is escaped comes out as it was, beside what is replaced', () => {
  fc.assert(
    fc.property(texts, texts, texts, (before, value, after) => {
      // Before a reference a "$" would make it a literal.
      const head = before.replace(/\$+$/, '')
      const got = expand(`${escaped(head)}\${VALUE}${escaped(after)}`, { VALUE: value })
      assert.deepEqual([got.text, got.error], [head + value + after, ''])
    }),
    { numRuns },
  )
})

test('what stands around a broken reference is not told', () => {
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const { error } = expand(`${escaped(before)}hunter2\${GONE}hunter2${after}`, env)
      assert.ok(error !== '' && !error.includes('hunter2'), error)
    }),
    { numRuns },
  )
})
