// owns: host
import assert from 'node:assert/strict'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { mountBindfs } from '../../test/helpers/bindfs.ts'
import { treeOf } from '../../test/helpers/collector.ts'
import { withoutBindfs } from '../../test/helpers/host-needs.ts'
import { HostFiles } from './host.ts'

test('a root directory does not lead to file systems that hang', { skip: withoutBindfs }, async t => {
  const { directory, servers } = await mountBindfs(t, 1)
  const tree = treeOf(t, { 'rootfs/etc/near': 'text', 'rootfs/etc/number': '7' })
  const etc = join(tree, 'rootfs/etc')
  symlinkSync(join(directory, 'm0'), join(etc, 'far'))
  symlinkSync('near', join(etc, 'link'))
  const host = new HostFiles({
    procfs: '/proc',
    sysfs: '/sys',
    rootfs: join(tree, 'rootfs'),
    udev: '/run/udev/data',
  })
  const whole = new HostFiles({
    procfs: '/proc',
    sysfs: '/sys',
    rootfs: join(directory, 'm0'),
    udev: '/run/udev/data',
  })
  t.after(() => {
    host.close()
    whole.close()
  })
  assert.equal(whole.root.exists('etc'), false)
  assert.deepEqual(whole.root.list(''), [])
  servers[0]!.kill('SIGSTOP')
  const { root } = host
  // None of them comes back where it looks.
  for (const path of ['etc/far', 'etc/far/x']) {
    assert.throws(() => root.bytes(path), /cannot read .*\/etc\/far.*: it is on a file system that may hang/)
    assert.throws(() => root.text(path), /may hang/)
    assert.deepEqual(
      [root.find(path), root.number(path), root.link(path), root.real(path), root.exists(path)],
      [undefined, undefined, undefined, undefined, false],
    )
    assert.deepEqual([root.list(path), root.directories(path)], [[], []])
  }
  assert.equal(root.text('etc/near'), 'text')
  assert.equal(root.find('etc/link'), 'text')
  assert.equal(root.number('etc/number'), 7)
  assert.equal(root.link('etc/link'), 'near')
  assert.equal(root.real('etc/link'), join(etc, 'near'))
  assert.deepEqual([root.exists('etc/link'), root.exists('etc/none')], [true, false])
  assert.deepEqual(root.list('etc'), ['far', 'link', 'near', 'number'])
  assert.deepEqual(root.directories(''), ['etc'])
})
