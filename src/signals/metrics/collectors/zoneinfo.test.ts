import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { zoneinfo } from './zoneinfo.ts'

test('known fields are shown by node and zone', async () => {
  const { lines, outcome } = await readWith(zoneinfo)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_zoneinfo_high_pages gauge',
    'node_zoneinfo_high_pages{node="0",zone="DMA"} 20',
    '# TYPE node_zoneinfo_low_pages gauge',
    'node_zoneinfo_low_pages{node="0",zone="DMA"} 17',
    '# TYPE node_zoneinfo_managed_pages gauge',
    'node_zoneinfo_managed_pages{node="0",zone="DMA"} 3840',
    '# TYPE node_zoneinfo_min_pages gauge',
    'node_zoneinfo_min_pages{node="0",zone="DMA"} 14',
    'node_zoneinfo_min_pages{node="1",zone="Normal"} 16001',
    '# TYPE node_zoneinfo_nr_dirtied_total counter',
    'node_zoneinfo_nr_dirtied_total{node="0",zone="DMA"} 880123',
    '# TYPE node_zoneinfo_nr_free_pages gauge',
    'node_zoneinfo_nr_free_pages{node="0",zone="DMA"} 3840',
    'node_zoneinfo_nr_free_pages{node="1",zone="Normal"} 201777',
    '# TYPE node_zoneinfo_nr_inactive_anon_pages gauge',
    'node_zoneinfo_nr_inactive_anon_pages{node="0",zone="DMA"} 3120',
    '# TYPE node_zoneinfo_nr_kernel_stacks gauge',
    'node_zoneinfo_nr_kernel_stacks{node="0",zone="DMA"} 5600',
    '# TYPE node_zoneinfo_numa_hit_total counter',
    'node_zoneinfo_numa_hit_total{node="0",zone="DMA"} 12',
    'node_zoneinfo_numa_hit_total{node="1",zone="Normal"} 9.0441221e+07',
    '# TYPE node_zoneinfo_numa_interleave_total counter',
    'node_zoneinfo_numa_interleave_total{node="0",zone="DMA"} 1',
    '# TYPE node_zoneinfo_present_pages gauge',
    'node_zoneinfo_present_pages{node="0",zone="DMA"} 3998',
    '# TYPE node_zoneinfo_protection_0 gauge',
    'node_zoneinfo_protection_0{node="0",zone="DMA"} 0',
    'node_zoneinfo_protection_0{node="1",zone="Normal"} 0',
    '# TYPE node_zoneinfo_protection_1 gauge',
    'node_zoneinfo_protection_1{node="0",zone="DMA"} 1850',
    'node_zoneinfo_protection_1{node="1",zone="Normal"} 0',
    '# TYPE node_zoneinfo_protection_2 gauge',
    'node_zoneinfo_protection_2{node="0",zone="DMA"} 15800',
    'node_zoneinfo_protection_2{node="1",zone="Normal"} 0',
    '# TYPE node_zoneinfo_spanned_pages gauge',
    'node_zoneinfo_spanned_pages{node="0",zone="DMA"} 4095',
  ])
})

test('every field that is shown has its name', async t => {
  // `field`, or `field:name` where the name is another; `+`: it only grows.
  const fields = [
    'nr_free_pages min:min_pages low:low_pages high:high_pages scanned:scanned_pages',
    'spanned:spanned_pages present:present_pages managed:managed_pages',
    'nr_active_anon:nr_active_anon_pages nr_inactive_anon:nr_inactive_anon_pages',
    'nr_isolated_anon:nr_isolated_anon_pages nr_anon_pages nr_anon_transparent_hugepages',
    'nr_active_file:nr_active_file_pages nr_inactive_file:nr_inactive_file_pages',
    'nr_isolated_file:nr_isolated_file_pages nr_file_pages',
    'nr_slab_reclaimable:nr_slab_reclaimable_pages',
    'nr_slab_unreclaimable:nr_slab_unreclaimable_pages nr_mlock_stack:nr_mlock_stack_pages',
    'nr_kernel_stack:nr_kernel_stacks nr_mapped:nr_mapped_pages nr_dirty:nr_dirty_pages',
    'nr_writeback:nr_writeback_pages nr_unevictable:nr_unevictable_pages nr_shmem:nr_shmem_pages',
    'nr_dirtied+ nr_written+ numa_hit+ numa_miss+ numa_foreign+ numa_interleave+ numa_local+',
    'numa_other+',
  ]
    .flatMap(line => line.split(' '))
    .map(each => /^(\w+)(?::(\w+))?(\+?)$/.exec(each)!)
    .map(([, field, name = field, grows]) => ({ field, name: grows === '' ? name : `${name}_total` }))
  const text = fields.map(({ field }, i) => `        ${field} ${i + 1}\n`).join('')
  const root = treeOf(t, { 'proc/zoneinfo': `Node 0, zone   Normal\n${text}` })
  const { lines } = await readWith(zoneinfo, {}, root)
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')).sort(),
    fields.map(({ name }, i) => `node_zoneinfo_${name}{node="0",zone="Normal"} ${i + 1}`).sort(),
  )
})

test('junk is no success', t => survivesJunk(t, zoneinfo, ['proc/zoneinfo']))
