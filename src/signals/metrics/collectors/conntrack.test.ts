import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { conntrack } from './conntrack.ts'

const samples = (lines: readonly string[]) => lines.filter(line => !line.startsWith('#'))
const table = 'proc/net/stat/nf_conntrack'
const parameters = ['proc/sys/net/netfilter/nf_conntrack_count', 'proc/sys/net/netfilter/nf_conntrack_max']

test('columns are added up over the CPUs', async () => {
  const { lines, outcome } = await readWith(conntrack)
  assert.equal(outcome, 'success')
  assert.deepEqual(samples(lines), [
    'node_nf_conntrack_entries 28',
    'node_nf_conntrack_entries_limit 262144',
    'node_nf_conntrack_stat_drop 3',
    'node_nf_conntrack_stat_early_drop 7',
    'node_nf_conntrack_stat_found 22',
    'node_nf_conntrack_stat_ignore 512',
    'node_nf_conntrack_stat_insert 7',
    'node_nf_conntrack_stat_insert_failed 1',
    'node_nf_conntrack_stat_invalid 35',
    'node_nf_conntrack_stat_search_restart 5',
  ])
})

test('without connection tracking there is no data', async t => {
  for (const path of [table, ...parameters]) {
    const root = copyOfTree(t)
    rmSync(`${root}/${path}`)
    const { outcome, reason } = await readWith(conntrack, {}, root)
    assert.equal(outcome, 'no_data', path)
    assert.match(reason, /connection tracking is not active/)
  }
})

test('the last column may be missing, and no other', async t => {
  const read = (row: string) =>
    readWith(
      conntrack,
      {},
      treeOf(t, { [parameters[0]!]: '1\n', [parameters[1]!]: '2\n', [table]: `head\n${row}\n` }),
    )
  const { lines, outcome } = await read('0 0 A 0 B 0 0 0 0 0 0 0 0 0 0 0')
  assert.equal(outcome, 'success')
  assert.ok(lines.includes('node_nf_conntrack_stat_found 10'))
  assert.ok(lines.includes('node_nf_conntrack_stat_search_restart 0'))
  for (const row of [
    '0 0 A 0 B 0 0 0 0 0 0 0 0 0 0',
    `${'0 '.repeat(17)}0`,
    '',
    '0 0 x 0 B 0 0 0 0 0 0 0 0 0 0 0',
  ])
    assert.equal((await read(row)).outcome, 'failed', row)
})

test('junk is no success', async t => {
  await survivesJunk(t, conntrack, [table, ...parameters])
})
