import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { meminfo } from './meminfo.ts'

test('all fields are shown, in bytes where they have a unit', async () => {
  const { lines, outcome } = await readWith(meminfo)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_memory_Active_anon_bytes gauge',
    'node_memory_Active_anon_bytes 3.5841024e+09',
    '# TYPE node_memory_HugePages_Free gauge',
    'node_memory_HugePages_Free 3',
    '# TYPE node_memory_HugePages_Total gauge',
    'node_memory_HugePages_Total 8',
    '# TYPE node_memory_Hugepagesize_bytes gauge',
    'node_memory_Hugepagesize_bytes 2.097152e+06',
    '# TYPE node_memory_Hugetlb_bytes gauge',
    'node_memory_Hugetlb_bytes 1.6777216e+07',
    '# TYPE node_memory_Inactive_file_bytes gauge',
    'node_memory_Inactive_file_bytes 2.253254656e+09',
    '# TYPE node_memory_KReclaimable_bytes gauge',
    'node_memory_KReclaimable_bytes 5.2246528e+08',
    '# TYPE node_memory_MemAvailable_bytes gauge',
    'node_memory_MemAvailable_bytes 1.0035724288e+10',
    '# TYPE node_memory_MemFree_bytes gauge',
    'node_memory_MemFree_bytes 1.232896e+09',
    '# TYPE node_memory_MemTotal_bytes gauge',
    'node_memory_MemTotal_bytes 1.6694116352e+10',
    '# TYPE node_memory_SecPageTables_bytes gauge',
    'node_memory_SecPageTables_bytes 1.048576e+06',
    '# TYPE node_memory_VmallocTotal_bytes gauge',
    'node_memory_VmallocTotal_bytes 3.5184372087808e+13',
  ])
})

test('fields have their names, whatever else the kernel tells', async t => {
  const fields = ['MemTotal', 'Buffers', 'Cached', 'SwapTotal', 'SwapFree']
  const text = fields.map((field, i) => `${field}:  ${i + 1} kB\n`).join('')
  const { lines } = await readWith(meminfo, {}, treeOf(t, { 'proc/meminfo': text }))
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    fields.map((field, i) => `node_memory_${field}_bytes ${(i + 1) * 1024}`).sort(),
  )
})

test('junk is no success', t => survivesJunk(t, meminfo, ['proc/meminfo']))
