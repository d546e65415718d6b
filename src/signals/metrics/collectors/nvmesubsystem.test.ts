import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { nvmesubsystem } from './nvmesubsystem.ts'

test('a subsystem is shown with its namespaces and the state of each path', async () => {
  const { lines, outcome } = await readWith(nvmesubsystem)
  assert.equal(outcome, 'success')
  const of = (start: string) => lines.filter(line => line.startsWith(start))
  assert.deepEqual(of('node_nvmesubsystem_info'), [
    'node_nvmesubsystem_info{iopolicy="round-robin",model="KESTREL_P1",nqn="nqn.2014-08.org.example:array-7",serial="SN0001",subsystem="nvme-subsys0"} 1',
  ])
  assert.deepEqual(of('node_nvmesubsystem_namespace_info'), [
    'node_nvmesubsystem_namespace_info{device="nvme0n1",subsystem="nvme-subsys0"} 1',
  ])
  assert.deepEqual(of('node_nvmesubsystem_paths'), [
    'node_nvmesubsystem_paths{subsystem="nvme-subsys0"} 3',
    'node_nvmesubsystem_paths_live{subsystem="nvme-subsys0"} 1',
  ])
  const states = of('node_nvmesubsystem_path_state')
  assert.equal(states.length, 15)
  assert.deepEqual(
    states.filter(line => line.endsWith(' 1')),
    [
      'node_nvmesubsystem_path_state{controller="nvme0",state="live",subsystem="nvme-subsys0",transport="tcp"} 1',
      'node_nvmesubsystem_path_state{controller="nvme1",state="connecting",subsystem="nvme-subsys0",transport="tcp"} 1',
    ],
    'the state of nvme4, deleting, is none of those shown',
  )
})

test('a host without NVMe has no data, one that tells half is an error', async t => {
  assert.equal((await readWith(nvmesubsystem, {}, treeOf(t, {}))).outcome, 'no_data')
  const root = copyOfTree(t)
  rmSync(join(root, 'sys/class/nvme-subsystem/nvme-subsys0/nvme1/transport'))
  assert.match((await readWith(nvmesubsystem, {}, root)).reason, /ENOENT.*nvme1\/transport/)
  await survivesJunk(t, nvmesubsystem, ['sys/class/nvme-subsystem/nvme-subsys0/nvme0/state'], {}, true)
})
