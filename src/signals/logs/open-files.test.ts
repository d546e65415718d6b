import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileOwners } from './file-owners.ts'
import { LogFile, lineBuffer } from './log-file.ts'
import { OpenFiles } from './open-files.ts'

test('a file whose file system does not answer is closed when it does, unless it is needed again', t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-open-files-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const buffer = lineBuffer(1_024)
  const held = new Set<LogFile>()
  const opened = new OpenFiles({
    most: 2,
    owners: new FileOwners(),
    active: new Set(),
    isHeld: file => held.has(file),
    warn: () => undefined,
  })
  const [far, again, near] = ['far', 'again', 'near'].map(name => {
    const path = join(directory, name)
    writeFileSync(path, name)
    return new LogFile(path, statSync(path))
  }) as [LogFile, LogFile, LogFile]
  for (const file of [far, again]) {
    assert.ok(file.open(buffer))
    opened.add(file, 'user 1')
    held.add(file)
  }
  opened.close(again)
  assert.ok(near.open(buffer))
  opened.add(near, 'user 2')
  // Beyond what may be open: one that is held gives up its place, and is closed later.
  assert.ok(again.open(buffer))
  opened.add(again, 'user 1')
  assert.equal(opened.size, 2)
  opened.closeLate()
  assert.deepEqual([far.isOpen, again.isOpen, near.isOpen], [true, true, true])
  held.clear()
  opened.closeLate()
  assert.deepEqual([far.isOpen, again.isOpen, near.isOpen], [false, true, true])
  opened.close(again)
  opened.close(near)
  assert.deepEqual([opened.size, again.isOpen, near.isOpen], [0, false, false])
})
