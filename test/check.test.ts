// owns: process
// reads: the tree
// What `npm run check` holds, as a part of the tests.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { root } from './helpers/program-under-test.ts'

test('format, lint, types, architecture and generated files are good', () => {
  const { status, stdout, stderr } = spawnSync('bash', ['tools/check', '--quiet'], {
    cwd: root,
    encoding: 'utf8',
  })
  assert.equal(status, 0, `${stdout}${stderr}`)
})
