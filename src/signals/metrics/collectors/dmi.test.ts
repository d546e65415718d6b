import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { dmi } from './dmi.ts'

test('what the firmware tells is a label, what is missing is none', async () => {
  const { lines, outcome } = await readWith(dmi)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_dmi_info gauge',
    'node_dmi_info{bios_date="03/14/2024",bios_vendor="Example Firmware",chassis_version="",product_name="Server\x1c 9000",system_vendor="Caf\ufffd Ltd."} 1',
  ])
})

test('without DMI there is no data', async t => {
  assert.equal((await readWith(dmi, {}, treeOf(t, {}))).outcome, 'no_data')
})

test('a text that is no attribute is cut', async t => {
  const long = { 'sys/class/dmi/id/bios_vendor': 'x'.repeat(9999) }
  const { lines } = await readWith(dmi, {}, treeOf(t, long))
  assert.equal(lines[1], `node_dmi_info{bios_vendor="${'x'.repeat(4096)}"} 1`)
  await survivesJunk(t, dmi, ['sys/class/dmi/id/bios_vendor'], {}, true)
})
