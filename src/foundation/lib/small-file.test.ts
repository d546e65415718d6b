import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readSmallFile } from './small-file.ts'

test('small files are read whole, larger ones and what is none are refused', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-small-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const at = (name: string) => join(directory, name)
  for (const size of [0, 1, 4_096, 10_000]) {
    writeFileSync(at('file'), Buffer.alloc(size, 'x'))
    assert.equal((await readSmallFile(at('file'), 10_000)).length, size)
  }
  await assert.rejects(readSmallFile(at('file'), 9_999), /^Error: it is larger than 9999 bytes$/)
  symlinkSync('file', at('link'))
  assert.equal((await readSmallFile(at('link'), 10_000)).length, 10_000)
  execFileSync('mkfifo', [at('fifo')])
  await assert.rejects(readSmallFile(at('fifo'), 1), /not a regular file/)
  await assert.rejects(readSmallFile('/dev/zero', 1), /not a regular file/)
  await assert.rejects(readSmallFile(at('none'), 1), { code: 'ENOENT' })
  // Their sizes are told as 0.
  assert.match((await readSmallFile('/proc/self/status', 100_000)).toString(), /^Name:/)
})
