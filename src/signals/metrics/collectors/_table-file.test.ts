import assert from 'node:assert/strict'
import { test } from 'node:test'
import { treeOf } from '../../../../test/helpers/collector.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { TableFile } from './_table-file.ts'

test('a count is a number that can be counted to, and a fault names the file', t => {
  const root = treeOf(t, { 'proc/table': '12 -1\n1e999 x' })
  const host = new HostFiles({ procfs: `${root}/proc`, sysfs: '', rootfs: '', udev: '' })
  t.after(() => host.close())
  const file = new TableFile(host.proc, 'table').read()
  const fault = { message: `cannot read ${root}/proc/table: a number is missing` }
  assert.equal(file.line(), true)
  assert.equal(file.count(), 12)
  assert.throws(() => file.count(), fault)
  assert.throws(() => file.count(), fault)
  file.line()
  assert.throws(() => file.count(), fault)
  assert.throws(() => file.count(), fault)
  assert.throws(() => new TableFile(host.proc, 'nothing').read(), { code: 'ENOENT' })
})
