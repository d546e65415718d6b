import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk } from '../../../../test/helpers/collector.ts'
import { softirqs } from './softirqs.ts'

test('kinds are shown by CPU', async () => {
  const { lines, outcome } = await readWith(softirqs)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_softirqs_functions_total counter',
    'node_softirqs_functions_total{cpu="0",type="HI"} 4',
    'node_softirqs_functions_total{cpu="0",type="NET_TX"} 70',
    'node_softirqs_functions_total{cpu="0",type="RCU"} 161600',
    'node_softirqs_functions_total{cpu="0",type="TIMER"} 266700',
    'node_softirqs_functions_total{cpu="1",type="HI"} 5',
    'node_softirqs_functions_total{cpu="1",type="NET_TX"} 7',
    'node_softirqs_functions_total{cpu="1",type="RCU"} 161600',
    'node_softirqs_functions_total{cpu="1",type="TIMER"} 266700',
    'node_softirqs_functions_total{cpu="2",type="HI"} 3',
    'node_softirqs_functions_total{cpu="2",type="NET_TX"} 0',
    'node_softirqs_functions_total{cpu="2",type="RCU"} 161600',
    'node_softirqs_functions_total{cpu="2",type="TIMER"} 266700',
  ])
})

test('junk is no success', t => survivesJunk(t, softirqs, ['proc/softirqs']))
