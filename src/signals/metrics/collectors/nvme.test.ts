import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { nvme } from './nvme.ts'

test('controllers and namespaces are shown, those behind a path too', async () => {
  const { lines, outcome } = await readWith(nvme)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_nvme_info{cntlid="1",device="nvme0",firmware_revision="2.11.0",model="KESTREL_P1",serial="SN0001",state="live"} 1',
      'node_nvme_info{cntlid="2",device="nvme1",firmware_revision="2.11.0",model="KESTREL_P1",serial="SN0002",state="resetting"} 1',
      'node_nvme_namespace_capacity_bytes{device="nvme0",nsid="1"} 1.048576e+09',
      'node_nvme_namespace_capacity_bytes{device="nvme0",nsid="12"} 1.6777216e+07',
      'node_nvme_namespace_capacity_bytes{device="nvme1",nsid="1"} 50688',
      'node_nvme_namespace_info{ana_state="optimized",device="nvme0",nsid="1"} 1',
      'node_nvme_namespace_info{ana_state="unknown",device="nvme0",nsid="12"} 1',
      'node_nvme_namespace_info{ana_state="unknown",device="nvme1",nsid="1"} 1',
      'node_nvme_namespace_logical_block_size_bytes{device="nvme0",nsid="1"} 512',
      'node_nvme_namespace_logical_block_size_bytes{device="nvme0",nsid="12"} 4096',
      'node_nvme_namespace_logical_block_size_bytes{device="nvme1",nsid="1"} 512',
      'node_nvme_namespace_size_bytes{device="nvme0",nsid="1"} 1.048576e+09',
      'node_nvme_namespace_size_bytes{device="nvme0",nsid="12"} 1.6777216e+07',
      'node_nvme_namespace_size_bytes{device="nvme1",nsid="1"} 50688',
      'node_nvme_namespace_used_bytes{device="nvme0",nsid="1"} 5.24288e+08',
      'node_nvme_namespace_used_bytes{device="nvme0",nsid="12"} 40960',
      'node_nvme_namespace_used_bytes{device="nvme1",nsid="1"} 3584',
    ],
  )
})

test('a kernel that does not tell what is used shows the rest', async t => {
  const root = copyOfTree(t)
  rmSync(join(root, 'sys/class/nvme/nvme1/nvme1n1/nuse'))
  const { lines, outcome } = await readWith(nvme, {}, root)
  assert.equal(outcome, 'success')
  assert.ok(lines.includes('node_nvme_namespace_size_bytes{device="nvme1",nsid="1"} 50688'))
  assert.equal(
    lines.some(line => line.startsWith('node_nvme_namespace_used_bytes{device="nvme1"')),
    false,
  )
})

test('a host without NVMe has no data, one without devices a success, junk is an error', async t => {
  assert.equal((await readWith(nvme, {}, treeOf(t, {}))).outcome, 'no_data')
  assert.equal((await readWith(nvme, {}, treeOf(t, { 'sys/class/nvme-x/y': '' }))).outcome, 'no_data')
  const root = treeOf(t, { 'sys/class/nvme/nvme0/cntlid': '1\n' })
  assert.match((await readWith(nvme, {}, root)).reason, /ENOENT.*nvme0\/firmware_rev/)
  await survivesJunk(t, nvme, ['sys/class/nvme/nvme1/nvme1n1/size'])
  await survivesJunk(t, nvme, ['sys/class/nvme/nvme0/model'], {}, true)
})
