import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { interrupts } from './interrupts.ts'

test('lines are shown by CPU, without those that are for all', async () => {
  const { lines, outcome } = await readWith(interrupts)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_interrupts_total counter',
    'node_interrupts_total{cpu="0",devices="",info="DMAR-MSI",type="25"} 0',
    'node_interrupts_total{cpu="0",devices="",info="Local timer interrupts",type="LOC"} 801234',
    'node_interrupts_total{cpu="0",devices="",info="Non-maskable interrupts",type="NMI"} 12',
    'node_interrupts_total{cpu="0",devices="0-edge ahci[0000:00:1f.2]",info="PCI-MSIX-0000:00:1f.2",type="24"} 1200',
    'node_interrupts_total{cpu="0",devices="1-edge i8042",info="IO-APIC",type="1"} 9',
    'node_interrupts_total{cpu="1",devices="",info="DMAR-MSI",type="25"} 0',
    'node_interrupts_total{cpu="1",devices="",info="Local timer interrupts",type="LOC"} 799001',
    'node_interrupts_total{cpu="1",devices="",info="Non-maskable interrupts",type="NMI"} 11',
    'node_interrupts_total{cpu="1",devices="0-edge ahci[0000:00:1f.2]",info="PCI-MSIX-0000:00:1f.2",type="24"} 0',
    'node_interrupts_total{cpu="1",devices="1-edge i8042",info="IO-APIC",type="1"} 0',
    'node_interrupts_total{cpu="2",devices="",info="DMAR-MSI",type="25"} 0',
    'node_interrupts_total{cpu="2",devices="",info="Local timer interrupts",type="LOC"} 798002',
    'node_interrupts_total{cpu="2",devices="",info="Non-maskable interrupts",type="NMI"} 10',
    'node_interrupts_total{cpu="2",devices="0-edge ahci[0000:00:1f.2]",info="PCI-MSIX-0000:00:1f.2",type="24"} 7',
    'node_interrupts_total{cpu="2",devices="1-edge i8042",info="IO-APIC",type="1"} 0',
  ])
})

test('on arm64 a number may follow its name at once', async t => {
  const root = treeOf(t, {
    'proc/interrupts': [
      '           CPU0       CPU2',
      ' 10:        123          4     GICv3  27 Level     arch_timer',
      'IPI0:1234567890 1234567891       Rescheduling interrupts',
      'Err:          0',
      '',
    ].join('\n'),
  })
  const { lines } = await readWith(interrupts, {}, root)
  assert.deepEqual(lines.slice(1), [
    'node_interrupts_total{cpu="0",devices="",info="Rescheduling interrupts",type="IPI0"} 1.23456789e+09',
    'node_interrupts_total{cpu="0",devices="27 Level arch_timer",info="GICv3",type="10"} 123',
    'node_interrupts_total{cpu="2",devices="",info="Rescheduling interrupts",type="IPI0"} 1.234567891e+09',
    'node_interrupts_total{cpu="2",devices="27 Level arch_timer",info="GICv3",type="10"} 4',
  ])
})

test('patterns see name, info and devices', async () => {
  const check = async (options: Record<string, string | boolean>, want: string[]) => {
    const { lines } = await readWith(interrupts, options)
    assert.deepEqual([...new Set(lines.flatMap(line => /type="(\w+)"/.exec(line)?.[1] ?? []))].sort(), want)
  }
  await check({ name_include: ';IO-APIC;' }, ['1'])
  await check({ name_include: '^(24|25|NMI);', name_exclude: 'ahci' }, ['25', 'NMI'])
  await check({ include_zeros: false }, ['1', '24', 'LOC', 'NMI'])
})

test('interrupts that never happened are left out by CPU', async () => {
  const { lines } = await readWith(interrupts, { include_zeros: false, name_include: '^1;' })
  assert.deepEqual(lines.slice(1), [
    'node_interrupts_total{cpu="0",devices="1-edge i8042",info="IO-APIC",type="1"} 9',
  ])
})

test('junk is no success', t => survivesJunk(t, interrupts, ['proc/interrupts']))
