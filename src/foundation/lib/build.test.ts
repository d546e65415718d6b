import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { build } from './build.ts'

test('sources carry the version of package.json', () => {
  const { version } = JSON.parse(readFileSync(`${import.meta.dirname}/../../../package.json`, 'utf8'))
  assert.equal(build().version, version)
  assert.match(build().built, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
})
