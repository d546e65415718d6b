import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { loadConfig } from '../../../config/index.ts'
import { agentParts } from './agent-parts.ts'
import { makeBundle, mostBundleBytes } from './bundle.ts'
import { hostParts } from './host-parts.ts'
import { ownParts } from './own-parts.ts'
import type { Part } from './part.ts'
import { scrubFor } from './scrub.ts'

const agent = { answered: false, address: '', attempts: [] }
const now = new Date('2026-11-21T01:02:03.456Z')

function part(name: string, body: string | Buffer, more: Partial<Part> = {}): Part {
  const collect = async (most: number) => {
    const bytes = Buffer.from(body)
    return { body: bytes.subarray(0, most), cut: bytes.length > most }
  }
  return { name, what: `What ${name} is`, source: 'here', form: 'text', mostBytes: 100_000, collect, ...more }
}

/** Unpacked by the system's tar, which is to say nothing. */
function unpack(t: TestContext, archive: Buffer): { root: string; directory: string } {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bundle-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'bundle.tar.gz')
  writeFileSync(file, archive)
  const said = execFileSync('bash', ['-c', `tar -xzf "${file}" -C "${directory}" 2>&1`]).toString()
  assert.equal(said, '')
  rmSync(file)
  const [root, ...others] = readdirSync(directory)
  assert.deepEqual(others, [])
  return { root: root!, directory: join(directory, root!) }
}

test('the archive has its files in order, and the same ones make the same bytes', async t => {
  const parts = [
    part('b.txt', 'text'),
    part('a/deep.json', '{"a":1}', { form: 'json' }),
    part('c.txt', ''),
    part('late.txt', 'x', { collect: () => Promise.reject(new Error('cannot: token=abc')) }),
  ]
  const { archive, manifest } = await makeBundle(parts, agent, scrubFor([]), now)
  assert.deepEqual(archive, (await makeBundle(parts, agent, scrubFor([]), now)).archive)
  const { root, directory } = unpack(t, archive)
  assert.match(root, /^svc-diagnostics-[\w.-]+-20261121T010203Z$/)
  const file = (name: string) => readFileSync(join(directory, name), 'utf8')
  assert.deepEqual(JSON.parse(file('manifest.json')), JSON.parse(JSON.stringify(manifest)))
  assert.match(file('README.txt'), /Before you send it/)
  assert.deepEqual([file('b.txt'), file('a/deep.json'), file('c.txt')], ['text', '{\n  "a": 1\n}\n', ''])
  assert.deepEqual(
    manifest.files.map(({ name, bytes, truncated, redacted }) => [name, bytes, truncated, redacted]),
    [
      ['b.txt', 4, false, 0],
      ['a/deep.json', 13, false, 0],
      ['c.txt', 0, false, 0],
    ],
  )
  assert.deepEqual(manifest.missing, [
    { name: 'late.txt', description: 'What late.txt is', source: 'here', reason: 'cannot: token=[REDACTED]' },
  ])
})

test('archives of every size end as tar expects', async t => {
  for (let blocks = 0; blocks < 22; blocks++) {
    const size = blocks * 512 + (blocks % 2)
    const { archive } = await makeBundle([part('a.txt', 'x'.repeat(size))], agent, scrubFor([]), now)
    assert.equal(readFileSync(join(unpack(t, archive).directory, 'a.txt')).length, size)
  }
})

test('what is too large is cut, and no part of a secret stays at the cut', async () => {
  const secret = 'correct-horse-battery-staple'
  const scrub = scrubFor([secret])
  // The secret lies across the end of what fits and of what is collected, in every way.
  for (let shift = 0; shift <= secret.length; shift++) {
    const text = `${'.'.repeat(shift)}${secret.repeat(8000)}`
    const mostBytes = 1000
    const { manifest, archive } = await makeBundle([part('a.txt', text, { mostBytes })], agent, scrub, now)
    const [entry] = manifest.files
    assert.ok(entry!.truncated && entry!.bytes <= mostBytes, JSON.stringify(entry))
    const tar = execFileSync('gzip', ['-dc'], { input: archive }).toString()
    for (let length = 4; length <= secret.length; length++)
      assert.ok(!tar.includes(secret.slice(0, length)), `${shift}: ${secret.slice(0, length)}`)
  }
})

test('what is packed is whole and without known secrets, or left out', async () => {
  const scrub = scrubFor(['correct-horse'])
  const packed = (name: string, body: Buffer) => part(name, body, { form: 'gzip', mostBytes: 1000 })
  const { manifest } = await makeBundle(
    [
      packed('good.gz', gzipSync('a profile')),
      packed('telling.gz', gzipSync('a correct-horse')),
      packed('large.gz', Buffer.alloc(2000)),
      packed('none.gz', Buffer.from('not packed')),
      packed('bomb.gz', gzipSync(Buffer.alloc(100 * 1024 * 1024)).subarray(0, 1000)),
    ],
    agent,
    scrub,
    now,
  )
  assert.deepEqual(
    manifest.files.map(({ name }) => name),
    ['good.gz'],
  )
  assert.deepEqual(
    manifest.missing.map(({ name }) => name),
    ['telling.gz', 'large.gz', 'none.gz', 'bomb.gz'],
  )
  assert.equal(manifest.missing[0]!.reason, 'it contains a secret of the configuration')
})

test('all parts together have room in a bundle', () => {
  const loaded = loadConfig({ path: '/nowhere', explicit: false, env: {} })
  const parts = [...agentParts(undefined, '/metrics'), ...ownParts(loaded), ...hostParts(undefined)]
  const names = parts.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const name of names)
    assert.ok(`svc-diagnostics-${'h'.repeat(40)}-20261121T010203Z/${name}`.length < 100, name)
  // Four processes at most, a header and padding for each file, the manifest.
  const sum = parts.reduce((total, { mostBytes }) => total + mostBytes + 1024, 0)
  assert.ok(sum + 3 * (64 * 1024 + 1024) + 64 * 1024 <= mostBundleBytes, String(sum))
})
