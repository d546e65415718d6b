import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, hostTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { parsePciIds, pciNames } from './_pci-names.ts'
import { pcidevice } from './pcidevice.ts'

const samples = async (options: Record<string, unknown> = {}, root?: string) =>
  (await readWith(pcidevice, options, root)).lines.filter(line => !line.startsWith('#'))
const bridge = 'bus="00",device="01",function="0",segment="0000"'
const card = 'bus="03",device="00",function="0",segment="0000"'

test('each device shows what it is, its link and its power', async () => {
  const state = (place: string, now: string) =>
    ['D0', 'D1', 'D2', 'D3cold', 'D3hot', 'error', 'unknown'].map(
      each => `node_pcidevice_power_state{${place},state="${each}"} ${each === now ? 1 : 0}`,
    )
  const both = (metric: string, first: string, second: string) => [
    `node_pcidevice_${metric}{${bridge}} ${first}`,
    `node_pcidevice_${metric}{${card}} ${second}`,
  ]
  assert.deepEqual(await samples(), [
    ...both('current_link_transfers_per_second', '2.5e+09', '8e+09'),
    ...both('current_link_width', '8', '4'),
    ...both('d3cold_allowed', '1', '0'),
    'node_pcidevice_info{bus="00",class_id="0x060400",device="01",device_id="0x1453",function="0",parent_bus="*",' +
      'parent_device="*",parent_function="*",parent_segment="*",revision="0x00",segment="0000",' +
      'subsystem_device_id="0x1453",subsystem_vendor_id="0x1022",vendor_id="0x1022"} 1',
    'node_pcidevice_info{bus="03",class_id="0x030000",device="00",device_id="0x731f",function="0",parent_bus="00",' +
      'parent_device="01",parent_function="0",parent_segment="0000",revision="0xc1",segment="0000",' +
      'subsystem_device_id="0xe411",subsystem_vendor_id="0x1da2",vendor_id="0x1002"} 1',
    ...both('max_link_transfers_per_second', '-1', '1.6e+10'),
    ...both('max_link_width', '255', '16'),
    `node_pcidevice_numa_node{${card}} 1`,
    ...state(bridge, 'D3hot'),
    ...state(card, 'D0'),
    ...both('sriov_drivers_autoprobe', '0', '1'),
    ...both('sriov_numvfs', '0', '2'),
    ...both('sriov_totalvfs', '0', '12'),
    ...both('sriov_vf_total_msix', '0', '0'),
  ])
})

test('names come from pci.ids, from wherever it is', async t => {
  const named = (lines: readonly string[]) => lines.find(line => /_info\{bus="03"/.test(line)) ?? ''
  const own = named(await samples({ names: true }))
  assert.match(own, /class_name="VGA controller",device="00",device_id="0x731f"/)
  assert.match(own, /device_name="Navi 10 \[Radeon RX 5600 OEM\/5600 XT\]"/)
  assert.match(own, /subsystem_device_name="Pulse RX 5600 XT",subsystem_vendor_id="0x1da2"/)
  assert.match(own, /subsystem_vendor_name="Sapphire Technology Limited"/)
  const root = copyOfTree(t)
  rmSync(join(root, 'rootfs/usr/share'), { recursive: true })
  assert.match(named(await samples({ names: true }, root)), /device_name="731f".*vendor_name="1002"/)
  const idsfile = join(hostTree, 'rootfs/usr/share/misc/pci.ids')
  assert.equal(named(await samples({ names: true, idsfile }, root)), own)
})

test('what has no name is called by its number', () => {
  const names = parsePciIds(
    '8086  Intel\n\t0001  One\n\t\t8086 0002  Two\nC 02  Network\n\t00  Ethernet\n junk\n',
  )
  const ids = { vendor: '8086', device: '0001', subsystemVendor: '8086', subsystemDevice: '0002' }
  assert.deepEqual(pciNames(names, { ...ids, class: '020001' }), {
    vendor: 'Intel',
    device: 'One',
    subsystemVendor: 'Intel',
    subsystemDevice: 'Two',
    class: 'Ethernet',
  })
  assert.equal(pciNames(names, { ...ids, class: '028000' }).class, 'Network')
  assert.equal(pciNames(names, { ...ids, class: 'ff0000' }).class, 'Unknown class (ff0000)')
  assert.equal(pciNames(parsePciIds('x '.repeat(500_000)), { ...ids, class: 'ff0000' }).vendor, '8086')
  assert.equal(parsePciIds(`x${' '.repeat(1_000_000)}`).size, 1)
})

test('a device that goes is forgotten', async t => {
  const root = copyOfTree(t)
  const { lines } = await readWith(pcidevice, {}, root, async () =>
    rmSync(join(root, 'sys/bus/pci/devices/0000:03:00.0')),
  )
  assert.deepEqual(
    lines.filter(line => line.includes('bus="03"')),
    [],
  )
  assert.ok(lines.some(line => line.includes('bus="00"')))
})

test('a host without the bus has no data, and what is no number fails', async t => {
  assert.equal((await readWith(pcidevice, {}, treeOf(t, {}))).outcome, 'no_data')
  const odd = await readWith(pcidevice, {}, treeOf(t, { 'sys/bus/pci/devices/x': '' }))
  assert.match(odd.reason, /not a link to a PCI device/)
  const device = 'sys/bus/pci/devices/0000:03:00.0'
  await survivesJunk(t, pcidevice, [`${device}/class`])
  await survivesJunk(t, pcidevice, [`${device}/power_state`, `${device}/sriov_numvfs`], {}, true)
  await survivesJunk(t, pcidevice, ['rootfs/usr/share/misc/pci.ids'], { names: true }, true)
  const root = copyOfTree(t)
  rmSync(join(root, device, 'vendor'))
  assert.equal((await readWith(pcidevice, {}, root)).outcome, 'failed')
})
