import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { watchdog } from './watchdog.ts'

test('watchdogs are shown with what their drivers know', async () => {
  const { lines, outcome } = await readWith(watchdog)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_watchdog_bootstatus{name="watchdog0"} 32',
      'node_watchdog_info{identity="Software",name="watchdog1",options="",pretimeout_governor="",state="",status=""} 1',
      'node_watchdog_info{identity="iTCO_wdt",name="watchdog0",options="0x8180",pretimeout_governor="",state="active",status="0x8000"} 1',
      'node_watchdog_nowayout{name="watchdog0"} 0',
      'node_watchdog_timeleft_seconds{name="watchdog0"} 27',
      'node_watchdog_timeout_seconds{name="watchdog0"} 30',
    ],
  )
})

test('what few drivers know is shown, too', async t => {
  const at = 'sys/class/watchdog/watchdog0'
  const root = treeOf(t, {
    [`${at}/identity`]: 'aspeed_wdt\n',
    [`${at}/fw_version`]: '3\n',
    [`${at}/pretimeout`]: '7\n',
    [`${at}/access_cs0`]: '1\n',
  })
  const { lines } = await readWith(watchdog, {}, root)
  assert.deepEqual(
    lines.filter(line => !/^#|_info/.test(line)),
    [
      'node_watchdog_access_cs0{name="watchdog0"} 1',
      'node_watchdog_fw_version{name="watchdog0"} 3',
      'node_watchdog_pretimeout_seconds{name="watchdog0"} 7',
    ],
  )
})

test('without watchdogs there is no data', async t => {
  const root = treeOf(t, {})
  assert.equal((await readWith(watchdog, {}, root)).outcome, 'no_data')
  mkdirSync(`${root}/sys/class/watchdog`, { recursive: true })
  assert.equal((await readWith(watchdog, {}, root)).outcome, 'success')
})

test('junk is no success', async t => {
  await survivesJunk(t, watchdog, ['sys/class/watchdog/watchdog0/timeout'])
  await survivesJunk(t, watchdog, ['sys/class/watchdog/watchdog0/identity'], {}, true)
})
