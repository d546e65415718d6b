import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { filefd } from './filefd.ts'

test('open files and their limit are shown', async () => {
  const { lines, outcome } = await readWith(filefd)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_filefd_allocated gauge',
    'node_filefd_allocated 5312',
    '# TYPE node_filefd_maximum gauge',
    'node_filefd_maximum 9.223372036854776e+18',
  ])
})

test('junk is no success', t => survivesJunk(t, filefd, ['proc/sys/fs/file-nr']))
