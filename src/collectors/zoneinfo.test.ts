import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../test/helpers/collector.ts'
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

test('junk is no success', t => survivesJunk(t, zoneinfo, ['proc/zoneinfo']))
