import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatSize, parseSize } from './size.ts'

test('a size text becomes bytes', () => {
  const check = (text: string, want: number | undefined) => assert.equal(parseSize(text), want, text)
  check('0', 0)
  check('4096', 4096)
  check('256Mi', 268_435_456)
  check('256MiB', 268_435_456)
  check('1Gi', 1_073_741_824)
  check('500MB', 500_000_000)
  check('500M', 500_000_000)
  check('1.5Ki', 1536)
  check('4 KiB', 4096)
  check('12B', 12)
})

test('what is no size is refused', () => {
  const check = (text: string) => assert.equal(parseSize(text), undefined, text)
  for (const text of ['', 'Mi', '-1', '1e6', '1 2', '10iB', '12Xi', '9'.repeat(17), '9999999Pi']) check(text)
})

test('bytes become the shortest exact text', () => {
  const check = (bytes: number, want: string) => assert.equal(formatSize(bytes), want)
  check(0, '0')
  check(1000, '1000')
  check(1024, '1Ki')
  check(1536 * 1024, '1536Ki')
  check(32 * 1024 * 1024, '32Mi')
  check(1024 ** 4, '1Ti')
})
