import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { quoted } from './shell.ts'

test('whatever a name holds, a shell takes it for one word', () => {
  const names = [
    'shop',
    'a b',
    '$(id)',
    "it's",
    '`id`',
    ';reboot',
    'x\ny',
    '"',
    '\\',
    '&',
    '*',
    '~',
    '!1',
    '',
  ]
  for (const name of names)
    assert.equal(execFileSync('sh', ['-c', `printf %s ${quoted(name)}`], { encoding: 'utf8' }), name)
})

test('what begins with a dash is no option', () => {
  assert.equal(quoted('--help'), "-- '--help'")
  assert.equal(quoted('shop-server'), 'shop-server')
})
