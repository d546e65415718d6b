import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { drm } from './drm.ts'

test('cards with the driver amdgpu are shown, others and their ports are not', async () => {
  const { lines, outcome } = await readWith(drm)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_drm_card_info{card="card0",chip="0000:00:01_0_0000:03:00_0",memory_vendor="samsung",' +
        'power_performance_level="auto",unique_id="a1b2c3d4e5f60718",vendor="amd"} 1',
      'node_drm_gpu_busy_percent{card="card0"} 37',
      'node_drm_memory_gtt_size_bytes{card="card0"} 8.573157376e+09',
      'node_drm_memory_gtt_used_bytes{card="card0"} 1.52117248e+08',
      'node_drm_memory_vis_vram_size_bytes{card="card0"} 2.68435456e+08',
      'node_drm_memory_vis_vram_used_bytes{card="card0"} 2.048e+07',
      'node_drm_memory_vram_size_bytes{card="card0"} 8.573157376e+09',
      'node_drm_memory_vram_used_bytes{card="card0"} 1.490378752e+09',
    ],
  )
})

test('a host without cards is a success, a card without a driver is not', async t => {
  const { lines, outcome } = await readWith(drm, {}, treeOf(t, {}))
  assert.deepEqual([lines, outcome], [[], 'success'])
  const odd = await readWith(drm, {}, treeOf(t, { 'sys/class/drm/card2/device/vendor': '0x1002' }))
  assert.equal(odd.outcome, 'failed')
})

test('what the card does not tell is 0, what is no number fails', async t => {
  const device = 'sys/class/drm/card0/device'
  const root = copyOfTree(t)
  rmSync(join(root, device, 'gpu_busy_percent'))
  const { lines } = await readWith(drm, {}, root)
  assert.ok(lines.includes('node_drm_gpu_busy_percent{card="card0"} 0'))
  await survivesJunk(t, drm, [`${device}/uevent`, `${device}/unique_id`], {}, true)
  const noise = await readWith(
    drm,
    {},
    treeOf(t, { [`${device}/uevent`]: 'DRIVER=amdgpu', [`${device}/gpu_busy_percent`]: 'much' }),
  )
  assert.match(noise.reason, /gpu_busy_percent: no number/)
})
