import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { ResourceGroup, withoutResourceGroup } from '../../../test/helpers/resource-group.ts'
import { fitted, memoryLimit } from './memory-room.ts'

const mebibyte = 1024 * 1024

test('caches have their size where memory is ample, and a part of it where it is scarce', () => {
  assert.equal(fitted(24 * mebibyte, 8192 * mebibyte), 24 * mebibyte)
  assert.equal(fitted(24 * mebibyte, 512 * mebibyte), 24 * mebibyte)
  assert.equal(fitted(24 * mebibyte, 256 * mebibyte), 12 * mebibyte)
  assert.equal(fitted(24 * mebibyte, 0), 1)
  assert.ok(memoryLimit() > 0)
})

test('the limit is that of the control group', { skip: withoutResourceGroup }, () => {
  const group = new ResourceGroup({ cpus: 1, memoryBytes: 256 * mebibyte })
  try {
    const script = `import { memoryLimit } from ${JSON.stringify(import.meta.resolve('./memory-room.ts'))}
      console.log(memoryLimit())`
    const [command, ...args] = [...group.wrapper, process.execPath, '--input-type=module', '--eval', script]
    assert.equal(Number(execFileSync(command!, args, { encoding: 'utf8' })), 256 * mebibyte)
  } finally {
    group.close()
  }
})
