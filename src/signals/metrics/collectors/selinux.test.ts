import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { configuredMode, selinux } from './selinux.ts'

const samples = async (root?: string) =>
  (await readWith(selinux, {}, root)).lines.filter(line => !line.startsWith('#'))

test('the mode now and the configured one are shown', async () => {
  assert.deepEqual(await samples(), [
    'node_selinux_config_mode 0',
    'node_selinux_current_mode 1',
    'node_selinux_enabled 1',
  ])
})

test('it is off without its file system or without a policy', async t => {
  const off = ['node_selinux_enabled 0']
  assert.deepEqual(await samples(treeOf(t, {})), off)
  const enforce = { 'sys/fs/selinux/enforce': '0' }
  assert.deepEqual(await samples(treeOf(t, { ...enforce, 'proc/self/attr/current': 'kernel\0' })), off)
  assert.deepEqual(
    await samples(treeOf(t, { ...enforce, 'proc/self/attr/current': 'system_u:system_r:a:s0' })),
    ['node_selinux_config_mode -1', 'node_selinux_current_mode 0', 'node_selinux_enabled 1'],
  )
})

test('the first mode of the configuration counts', () => {
  const check = (config: string, mode: number) => assert.equal(configuredMode(config), mode)
  check('SELINUX=enforcing', 1)
  check('# SELINUX=enforcing\n SELINUX = "permissive"\nSELINUX=enforcing', 0)
  check('SELINUX=disabled', -1)
  check('SELINUXTYPE=targeted', -1)
  check('x '.repeat(500_000), -1)
})

test('junk is no mode', t =>
  survivesJunk(t, selinux, ['sys/fs/selinux/enforce', 'rootfs/etc/selinux/config'], {}, true))
