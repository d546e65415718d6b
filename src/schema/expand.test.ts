// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of references in the file.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
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

test('what cannot be expanded says why and how to mend it', () => {
  const check = (text: string, want: RegExp) => assert.match(expand(text, env).error, want)
  check('${GONE}', /GONE is not set; set it, or write "\$\{GONE:-default\}"/)
  check('${GONE:?tell me}', /: tell me$/)
  check('${GONE:?}', /GONE is not set/)
  check('${EMPTY:?}', /EMPTY is empty/)
  check('${', /no "}" follows/)
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
