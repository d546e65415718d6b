import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { edac } from './edac.ts'

const samples = (lines: readonly string[]) => lines.filter(line => !line.startsWith('#'))
const controller = 'sys/devices/system/edac/mc/mc0'

test('errors are shown by controller, row and channel', async () => {
  const { lines, outcome } = await readWith(edac)
  assert.equal(outcome, 'success')
  // The driver does not tell errors beyond correction of channel 1, nor what its module is called.
  assert.deepEqual(samples(lines), [
    'node_edac_channel_correctable_errors_total{channel="0",controller="0",csrow="0",dimm_label="CPU1_csrow0_channel0"} 10',
    'node_edac_channel_correctable_errors_total{channel="1",controller="0",csrow="0",dimm_label="unknown"} 1',
    'node_edac_channel_uncorrectable_errors_total{channel="0",controller="0",csrow="0",dimm_label="CPU1_csrow0_channel0"} 2',
    'node_edac_correctable_errors_total{controller="0"} 12',
    'node_edac_csrow_correctable_errors_total{controller="0",csrow="0"} 11',
    'node_edac_csrow_correctable_errors_total{controller="0",csrow="unknown"} 1',
    'node_edac_csrow_uncorrectable_errors_total{controller="0",csrow="0"} 2',
    'node_edac_csrow_uncorrectable_errors_total{controller="0",csrow="unknown"} 0',
    'node_edac_uncorrectable_errors_total{controller="0"} 2',
  ])
})

test('a machine that does not check its memory shows nothing', async t => {
  assert.deepEqual(await readWith(edac, {}, treeOf(t, {})), { lines: [], outcome: 'success', reason: '' })
})

test('a missing count is an error, and what was read before it stays', async t => {
  const root = copyOfTree(t)
  rmSync(`${root}/${controller}/csrow0/ce_count`)
  const { lines, outcome, reason } = await readWith(edac, {}, root)
  assert.equal(outcome, 'failed')
  assert.match(reason, /csrow0\/ce_count/)
  assert.equal(samples(lines).length, 4)
})

test('a driver that does not tell errors beyond correction by row is no failure', async t => {
  const root = copyOfTree(t)
  const all = samples((await readWith(edac, {}, root)).lines)
  rmSync(`${root}/${controller}/csrow0/ue_count`)
  const { lines, outcome } = await readWith(edac, {}, root)
  assert.equal(outcome, 'success')
  assert.equal(samples(lines).length, all.length - 1)
})

test('junk is no success', async t => {
  const files = [
    'ce_count',
    'ue_noinfo_count',
    'csrow0/ue_count',
    'csrow0/ch0_ce_count',
    'csrow0/ch0_ue_count',
  ]
  await survivesJunk(
    t,
    edac,
    files.map(file => `${controller}/${file}`),
  )
  await survivesJunk(t, edac, [`${controller}/csrow0/ch0_dimm_label`], {}, true)
})
