import assert from 'node:assert/strict'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { startChild, startForOutput } from './child.ts'

test('a program that tells has its arguments as they are, nothing to read and nothing of the agent’s environment', async () => {
  process.env.SVC_SECRET_OF_TEST = 'x'
  // `env` of a shell would have been told `$HOME`.
  const child = startForOutput('/bin/sh', [
    '-c',
    'cat; env | grep SVC_; printf "%s|" "$PWD" "$@"; echo problem >&2; exit 3',
    'sh',
    '$HOME; id',
    'a b',
  ])
  delete process.env.SVC_SECRET_OF_TEST
  const [told, problem, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  assert.deepEqual([told, problem, status], ['/|$HOME; id|a b|', 'problem\n', 3])
})

test('a program that is not there comes as an error', async () => {
  const [error] = await once(startForOutput('/nowhere/it', []), 'error')
  assert.equal(error.code, 'ENOENT')
})

test('a child answers on its standard output', async () => {
  const child = startChild('/bin/cat')
  child.stdin.end('question')
  assert.equal(await text(child.stdout), 'question')
})
