import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from './nearest.ts'

const keys = ['endpoint', 'insecure', 'headers', 'tls', 'traces']

test('the nearest candidate is what was meant', () => {
  const check = (word: string, want: string | undefined) => assert.equal(nearest(word, keys), want, word)
  check('endpiont', 'endpoint')
  check('endpoin', 'endpoint')
  check('Endpoint', 'endpoint')
  check('header', 'headers')
  check('tsl', 'tls')
  check('trace', 'traces')
})

test('a word that is near to nothing has no nearest', () => {
  const check = (word: string) => assert.equal(nearest(word, keys), undefined, word)
  for (const word of ['', 'x', 'security', 'abc', 'e'.repeat(1_000_000)]) check(word)
})
