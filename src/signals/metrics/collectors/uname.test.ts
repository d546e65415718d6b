import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { hostname, machine, release, type, version } from 'node:os'
import { test } from 'node:test'
import { readWith } from '../../../../test/helpers/collector.ts'
import { uname } from './uname.ts'

test('the names are those of this host', async () => {
  const { lines } = await readWith(uname)
  const domain = readFileSync('/proc/sys/kernel/domainname', 'utf8').trim()
  assert.deepEqual(lines, [
    '# TYPE node_uname_info gauge',
    `node_uname_info{domainname="${domain}",machine="${machine()}",nodename="${hostname()}",` +
      `release="${release()}",sysname="${type()}",version="${version()}"} 1`,
  ])
})
