import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { installKey } from './install-key.ts'

function open(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-key-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const said: string[] = []
  const log = createLogger({ level: 'info', format: 'text', write: text => void said.push(text) })
  const path = join(directory, 'install.key')
  return { directory, path, said, read: () => installKey(directory, log)() }
}

test('the key is made at the first call, for nobody else to read, and stays the same', t => {
  const { directory, read, said } = open(t)
  const inner = join(directory, 'a', 'b')
  const log = createLogger({ level: 'info', format: 'text', write: text => void said.push(text) })
  const key = installKey(inner, log)
  assert.deepEqual(readdirSync(directory), [], 'nothing is made before')
  const first = key()
  assert.equal(first.length, 32)
  assert.equal(key(), first)
  assert.deepEqual(installKey(inner, log)(), first)
  assert.deepEqual(readdirSync(inner), ['install.key'])
  assert.equal(statSync(inner).mode & 0o777, 0o700)
  assert.equal(statSync(join(inner, 'install.key')).mode & 0o777, 0o600)
  // Of a directory that is there nothing is changed.
  chmodSync(directory, 0o755)
  assert.notDeepEqual(read(), first)
  assert.equal(statSync(directory).mode & 0o777, 0o755)
  assert.deepEqual(said, [])
})

test('processes that make the key at the same moment all have the same one', async t => {
  const { directory, path } = open(t)
  const program = `
    import { installKey } from '${new URL('install-key.ts', import.meta.url).href}'
    const log = { warn: (_, { reason }) => { throw new Error(reason) } }
    console.log(Buffer.from(installKey('${directory}', log)()).toString('hex'))`
  const run = promisify(execFile)
  const args = ['--input-type=module-typescript', '-e', program]
  const keys = await Promise.all(Array.from({ length: 6 }, () => run(process.execPath, args)))
  const kept = readFileSync(path).toString('hex')
  for (const { stdout } of keys) assert.equal(stdout.trim(), kept)
  assert.deepEqual(readdirSync(directory), ['install.key'])
})

test('a key that others may know, or that is none, is not used, and why is said', {
  skip: withoutRoot,
}, t => {
  const wrong: readonly [(path: string) => void, RegExp][] = [
    [path => writeFileSync(path, ''), /has 0 bytes, but a key has 32; delete it/],
    [path => writeFileSync(path, Buffer.alloc(32), { mode: 0o644 }), /is readable or writable by every user/],
    [path => mkdirSync(path), /is not a regular file|EISDIR/],
    [
      path => {
        writeFileSync(path, Buffer.alloc(32), { mode: 0o600 })
        chownSync(path, 4321, 4321)
      },
      /belongs to user 4321/,
    ],
  ]
  for (const [make, reason] of wrong) {
    const { path, read, said } = open(t)
    make(path)
    if (!statSync(path).isDirectory() && statSync(path).size === 0) chmodSync(path, 0o600)
    const key = read()
    assert.equal(key.length, 32)
    assert.notDeepEqual(key, Buffer.alloc(32))
    assert.equal(said.length, 1)
    assert.match(said[0]!, reason)
  }
})

test('a key of root that the group may read is used, as file systems of containers have it', t => {
  const { path, read, said } = open(t)
  writeFileSync(path, Buffer.alloc(32, 7))
  chmodSync(path, 0o660)
  assert.deepEqual(read(), Buffer.alloc(32, 7))
  assert.deepEqual(said, [])
})
