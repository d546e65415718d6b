import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { lnstat } from './lnstat.ts'

test('each column is a metric, by file and CPU', async () => {
  const { lines, outcome } = await readWith(lnstat)
  assert.equal(outcome, 'success')
  assert.equal(lines.filter(line => line.startsWith('# TYPE')).length, 13 + 17 - 1)
  const of = (name: string) => lines.filter(line => line.startsWith(`node_lnstat_${name}{`))
  assert.deepEqual(of('entries_total'), [
    'node_lnstat_entries_total{cpu="0",subsystem="arp_cache"} 4',
    'node_lnstat_entries_total{cpu="0",subsystem="nf_conntrack"} 28',
    'node_lnstat_entries_total{cpu="1",subsystem="arp_cache"} 4',
    'node_lnstat_entries_total{cpu="1",subsystem="nf_conntrack"} 28',
  ])
  assert.deepEqual(of('lookups_total'), [
    'node_lnstat_lookups_total{cpu="0",subsystem="arp_cache"} 1234',
    'node_lnstat_lookups_total{cpu="1",subsystem="arp_cache"} 255',
  ])
})

test('a host without such files shows nothing', async t => {
  assert.deepEqual(await readWith(lnstat, {}, treeOf(t, {})), { lines: [], outcome: 'success', reason: '' })
})

test('numbers without a name, and no numbers, are errors', async t => {
  for (const text of ['a b\n1 2 3\n', 'a b\n1 x\n', '', '\n\n']) {
    const { outcome, reason } = await readWith(lnstat, {}, treeOf(t, { 'proc/net/stat/rt_cache': text }))
    assert.equal(outcome, 'failed', text)
    assert.match(reason, /\/proc\/net\/stat\/rt_cache/)
  }
  await survivesJunk(t, lnstat, ['proc/net/stat/arp_cache'])
})
