import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { xfrm } from './xfrm.ts'

test('all causes are shown, those that this kernel does not know as 0', async t => {
  const { lines, outcome } = await readWith(xfrm)
  assert.equal(outcome, 'success')
  const samples = lines.filter(line => !line.startsWith('#'))
  assert.equal(samples.length, 28)
  for (const line of [
    'node_xfrm_acquire_error_packets_total 84',
    'node_xfrm_fwd_hdr_error_packets_total 78',
    'node_xfrm_in_error_packets_total 3',
    'node_xfrm_in_state_seq_error_packets_total 21',
    'node_xfrm_out_bundle_gen_error_packets_total 48',
    'node_xfrm_out_state_invalid_packets_total 81',
  ])
    assert.ok(samples.includes(line), line)
  const old = await readWith(xfrm, {}, treeOf(t, { 'proc/net/xfrm_stat': 'XfrmInError 4\n' }))
  assert.equal(old.outcome, 'success')
  assert.ok(old.lines.includes('node_xfrm_in_error_packets_total 4'))
  assert.ok(old.lines.includes('node_xfrm_acquire_error_packets_total 0'))
})

test('a kernel without IPsec, and lines of another form, are errors', async t => {
  assert.equal((await readWith(xfrm, {}, treeOf(t, {}))).outcome, 'failed')
  for (const text of ['XfrmInError\n', 'XfrmInError 1 2\n', 'XfrmInError x\n'])
    assert.equal(
      (await readWith(xfrm, {}, treeOf(t, { 'proc/net/xfrm_stat': text }))).outcome,
      'failed',
      text,
    )
  await survivesJunk(t, xfrm, ['proc/net/xfrm_stat'])
})
