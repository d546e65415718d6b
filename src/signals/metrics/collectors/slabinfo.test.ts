import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { slabinfo } from './slabinfo.ts'

test('slabs are shown', async () => {
  const { lines, outcome } = await readWith(slabinfo)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_slabinfo_active_objects gauge',
    'node_slabinfo_active_objects{slab="dentry"} 120044',
    'node_slabinfo_active_objects{slab="ext4_inode_cache"} 40110',
    'node_slabinfo_active_objects{slab="kmalloc-64"} 20096',
    '# TYPE node_slabinfo_object_size_bytes gauge',
    'node_slabinfo_object_size_bytes{slab="dentry"} 192',
    'node_slabinfo_object_size_bytes{slab="ext4_inode_cache"} 1184',
    'node_slabinfo_object_size_bytes{slab="kmalloc-64"} 64',
    '# TYPE node_slabinfo_objects gauge',
    'node_slabinfo_objects{slab="dentry"} 121800',
    'node_slabinfo_objects{slab="ext4_inode_cache"} 40500',
    'node_slabinfo_objects{slab="kmalloc-64"} 20480',
    '# TYPE node_slabinfo_objects_per_slab gauge',
    'node_slabinfo_objects_per_slab{slab="dentry"} 21',
    'node_slabinfo_objects_per_slab{slab="ext4_inode_cache"} 27',
    'node_slabinfo_objects_per_slab{slab="kmalloc-64"} 64',
    '# TYPE node_slabinfo_pages_per_slab gauge',
    'node_slabinfo_pages_per_slab{slab="dentry"} 1',
    'node_slabinfo_pages_per_slab{slab="ext4_inode_cache"} 8',
    'node_slabinfo_pages_per_slab{slab="kmalloc-64"} 1',
  ])
})

test('slabs are chosen by both patterns together', async () => {
  const check = async (options: Record<string, string>, want: string[]) => {
    const { lines } = await readWith(slabinfo, options)
    const names = lines.flatMap(line => /^node_slabinfo_objects\{slab="(.*)"\}/.exec(line)?.[1] ?? [])
    assert.deepEqual(names, want)
  }
  await check({ slabs_exclude: '^kmalloc-' }, ['dentry', 'ext4_inode_cache'])
  await check({ slabs_include: 'd' }, ['dentry', 'ext4_inode_cache'])
  await check({ slabs_include: 'd', slabs_exclude: 'cache$' }, ['dentry'])
})

test('junk is no success', t => survivesJunk(t, slabinfo, ['proc/slabinfo']))
