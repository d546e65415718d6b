import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { treeOf } from '../../../../test/helpers/collector.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { numberAt, optionalNumberAt, optionalTextAt, someTextAt, textAt } from './_small-file.ts'

test('attributes are one line of text, or a number at its beginning', t => {
  const root = treeOf(t, {
    'sys/text': ' KESTREL P1  \n',
    'sys/lines': 'a\nb',
    'sys/long': 'x'.repeat(5000),
    'sys/number': '3 (2)\n',
    'sys/hex': '0x10\n',
    'sys/empty': '',
  })
  const host = new HostFiles({
    procfs: join(root, 'proc'),
    sysfs: join(root, 'sys'),
    rootfs: root,
    udev: root,
  })
  t.after(() => host.close())
  const { sys } = host
  assert.equal(textAt(sys, 'text'), 'KESTREL P1')
  assert.equal(textAt(sys, 'empty'), '')
  assert.equal(optionalTextAt(sys, 'absent'), undefined)
  assert.throws(() => textAt(sys, 'absent'), /ENOENT/)
  assert.throws(() => textAt(sys, 'lines'), /cannot read .*lines: not one line of text/)
  assert.throws(() => optionalTextAt(sys, 'long'), /long: not one line of text/)
  assert.equal(someTextAt(sys, 'text'), 'KESTREL P1')
  assert.equal(someTextAt(sys, 'absent'), undefined)
  assert.throws(() => someTextAt(sys, 'empty'), /cannot read .*empty: empty file/)
  assert.equal(numberAt(sys, 'number'), 3)
  assert.equal(optionalNumberAt(sys, 'absent'), undefined)
  assert.throws(() => numberAt(sys, 'absent'), /ENOENT/)
  assert.throws(() => numberAt(sys, 'hex'), /hex: no number/)
  assert.throws(() => optionalNumberAt(sys, 'empty'), /empty: no number/)
})
