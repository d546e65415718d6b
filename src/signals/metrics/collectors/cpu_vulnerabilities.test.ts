import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { cpu_vulnerabilities, parseVulnerability } from './cpu_vulnerabilities.ts'

test('flaws are shown with their state', async () => {
  const { lines, outcome } = await readWith(cpu_vulnerabilities)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_cpu_vulnerabilities_info gauge',
    'node_cpu_vulnerabilities_info{codename="itlb_multihit",mitigation="KVM: Mitigation: VMX disabled",state="unknown"} 1',
    'node_cpu_vulnerabilities_info{codename="mds",mitigation="Clear CPU buffers; SMT vulnerable",state="mitigation"} 1',
    'node_cpu_vulnerabilities_info{codename="meltdown",mitigation="",state="not affected"} 1',
    'node_cpu_vulnerabilities_info{codename="mmio_stale_data",mitigation="No mitigations",state="unknown"} 1',
    'node_cpu_vulnerabilities_info{codename="spectre_v2",mitigation="IBPB: disabled, STIBP: disabled",state="vulnerable"} 1',
  ])
})

test('what follows a state is what is done about it', () => {
  const check = (text: string, state: string, mitigation: string) =>
    assert.deepEqual(parseVulnerability(text), { state, mitigation })
  check('Vulnerable', 'vulnerable', '')
  check(
    'Vulnerable: Clear CPU buffers attempted, no microcode; SMT vulnerable',
    'vulnerable',
    'Clear CPU buffers attempted, no microcode; SMT vulnerable',
  )
  check('Mitigation; SMT', 'mitigation', 'SMT')
  check('Not affected, so far', 'not affected', '')
  check('Processor vulnerable', 'unknown', 'Processor vulnerable')
})

test('a kernel that tells of no flaws has nothing to show', async t => {
  assert.equal((await readWith(cpu_vulnerabilities, {}, treeOf(t, {}))).outcome, 'success')
})

test('junk is no label', t =>
  survivesJunk(t, cpu_vulnerabilities, ['sys/devices/system/cpu/vulnerabilities/mds']))
