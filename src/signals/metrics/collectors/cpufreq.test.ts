import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { cpufreq } from './cpufreq.ts'

const directory = 'sys/devices/system/cpu'

test('kHz become Hz, offline CPUs and unknown frequencies are left out', async () => {
  const { lines, outcome } = await readWith(cpufreq)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#') && !/cpu="2"/.test(line)),
    [
      'node_cpu_frequency_avg_hertz{cpu="1"} 1.3e+09',
      'node_cpu_frequency_hertz{cpu="0"} 2.893202e+09',
      'node_cpu_frequency_max_hertz{cpu="0"} 3.9e+09',
      'node_cpu_frequency_max_hertz{cpu="1"} 3.9e+09',
      'node_cpu_frequency_min_hertz{cpu="0"} 8e+08',
      'node_cpu_frequency_min_hertz{cpu="1"} 8e+08',
      'node_cpu_scaling_frequency_hertz{cpu="0"} 1.2005e+09',
      'node_cpu_scaling_frequency_hertz{cpu="1"} 1.2005e+09',
      'node_cpu_scaling_frequency_max_hertz{cpu="0"} 2.9e+09',
      'node_cpu_scaling_frequency_max_hertz{cpu="1"} 2.9e+09',
      'node_cpu_scaling_frequency_min_hertz{cpu="0"} 8e+08',
      'node_cpu_scaling_frequency_min_hertz{cpu="1"} 8e+08',
      'node_cpu_scaling_governor{cpu="0",governor="performance"} 0',
      'node_cpu_scaling_governor{cpu="0",governor="powersave"} 1',
      'node_cpu_scaling_governor{cpu="1",governor="performance"} 0',
      'node_cpu_scaling_governor{cpu="1",governor="powersave"} 1',
    ],
  )
})

test('CPUs that have no frequency are no fault, a /sys without CPUs has no data', async t => {
  const root = copyOfTree(t)
  for (const number of [0, 1, 2]) rmSync(join(root, directory, `cpu${number}/cpufreq`), { recursive: true })
  assert.deepEqual(await readWith(cpufreq, {}, root), { lines: [], outcome: 'success', reason: '' })
  const { outcome, reason } = await readWith(cpufreq, {}, treeOf(t, {}))
  assert.equal(outcome, 'no_data')
  assert.match(reason, /cpu\/offline/)
})

test('junk is no success', t =>
  survivesJunk(t, cpufreq, [
    `${directory}/cpu0/cpufreq/scaling_cur_freq`,
    `${directory}/cpu0/cpufreq/scaling_governor`,
  ]))

test('a junk list of offline CPUs ends', t => survivesJunk(t, cpufreq, [`${directory}/offline`], {}, true))
