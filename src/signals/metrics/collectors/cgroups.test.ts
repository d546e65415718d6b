import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { cgroups } from './cgroups.ts'

test('controllers are shown by name', async () => {
  const { lines, outcome } = await readWith(cgroups)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_cgroups_cgroups gauge',
    'node_cgroups_cgroups{subsys_name="cpuset"} 143',
    'node_cgroups_cgroups{subsys_name="memory"} 143',
    'node_cgroups_cgroups{subsys_name="misc"} 1',
    '# TYPE node_cgroups_enabled gauge',
    'node_cgroups_enabled{subsys_name="cpuset"} 1',
    'node_cgroups_enabled{subsys_name="memory"} 1',
    'node_cgroups_enabled{subsys_name="misc"} 0',
  ])
})

test('junk is no success', t => survivesJunk(t, cgroups, ['proc/cgroups']))
