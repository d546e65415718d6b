import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { bonding } from './bonding.ts'

test('bonds are shown with their devices and how many are up', async () => {
  const { lines, outcome } = await readWith(bonding)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_bonding_active gauge',
    'node_bonding_active{master="bond0"} 1',
    'node_bonding_active{master="bond1"} 0',
    '# TYPE node_bonding_slaves gauge',
    'node_bonding_slaves{master="bond0"} 2',
    'node_bonding_slaves{master="bond1"} 0',
  ])
})

test('without bonds, or where one goes while it is read, there is no data', async t => {
  assert.equal((await readWith(bonding, {}, treeOf(t, {}))).outcome, 'no_data')
  const root = copyOfTree(t)
  rmSync(`${root}/sys/class/net/bond0/slave_eno2`, { recursive: true })
  const { lines, outcome, reason } = await readWith(bonding, {}, root)
  assert.deepEqual([lines, outcome], [[], 'no_data'])
  assert.match(reason, /slave_eno2/)
})

test('junk ends well', t =>
  survivesJunk(
    t,
    bonding,
    ['bonding_masters', 'bond0/bonding/slaves', 'bond0/lower_eno1/bonding_slave/mii_status'].map(
      path => `sys/class/net/${path}`,
    ),
    {},
    true,
  ))
