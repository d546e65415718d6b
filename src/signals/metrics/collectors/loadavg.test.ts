import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { loadavg, parseLoadavg } from './loadavg.ts'

test('the three averages are read', async () => {
  const { lines, outcome } = await readWith(loadavg)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_load1 gauge',
    'node_load1 0.52',
    '# TYPE node_load15 gauge',
    'node_load15 2.75',
    '# TYPE node_load5 gauge',
    'node_load5 1.25',
  ])
})

test('what is not three numbers is an error', async t => {
  assert.throws(() => parseLoadavg(Buffer.from('0.52 1.25')), /expected three numbers/)
  const { lines, outcome, reason } = await readWith(loadavg, {}, treeOf(t, { 'proc/loadavg': '' }))
  assert.deepEqual(lines, [])
  assert.equal(outcome, 'failed')
  assert.match(reason, /loadavg/)
})
