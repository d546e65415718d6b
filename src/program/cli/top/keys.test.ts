import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysOf } from './keys.ts'

test('keys are told apart, and what no key is told of writes nothing', () => {
  const check = (text: string, want: string[]) => assert.deepEqual(keysOf(text), want)
  check('ab/é名', ['a', 'b', '/', 'é', '名'])
  check('\x1b[A\x1bOB\x1b[5~\x1b[6~', ['up', 'down', 'page-up', 'page-down'])
  check('\r\x7f\x03\x1a\x15', ['enter', 'backspace', 'ctrl-c', 'ctrl-z', 'ctrl-u'])
  check('\x1b', ['escape'])
  check('\x1bq', ['escape', 'q'])
  check('\x1b[200~\x1b[1;5A\x00\x07', [])
})
