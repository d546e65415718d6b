import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptsGzip } from './accept.ts'

test('gzip is taken where it is named or covered, and not refused', () => {
  const check = (header: string | undefined, want: boolean) => assert.equal(acceptsGzip(header), want, header)
  check(undefined, false)
  check('', false)
  check('identity', false)
  check('gzip', true)
  check('deflate, GZIP;q=0.5', true)
  check('x-gzip', true)
  check('*', true)
  check('*;q=0', false)
  check('gzip;q=0', false)
  check('gzip;q=0, *', false)
  check('gzip ; q=0.0 , br', false)
  check('br, *;q=0.1', true)
  check('gzip;q=x', false)
})
