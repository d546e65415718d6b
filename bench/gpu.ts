/**
 * What NVIDIA's GPUs of this machine say, and what a measurement costs: of the whole process, and the longest time that
 * the event loop is held up. Another library than the driver's: SVC_NVML=FILE. There is no more to see it on real
 * hardware than to run this beside `nvidia-smi -q`.
 *
 * at most: 2 min
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Metric } from '../src/foundation/model/metric.ts'
import { loadNative, Unsupported } from '../src/kernel/native.ts'
import { GpuSource } from '../src/signals/metrics/gpu/gpu-source.ts'
import { report, skip } from './lib/figures.ts'

const rounds = 20
const intervalMs = 250

const native = loadNative()
if (native instanceof Unsupported) throw new Error(native.reason)
const { SVC_NVML: library } = process.env
let seen = 0
const last = new Map<string, Metric>()
const byPid = new Map<number, Metric[]>()
const source = new GpuSource({
  native,
  ...(library === undefined ? {} : { library }),
  intervalMs,
  perProcess: true,
  emitHost: metric => {
    if (metric.name === 'hw.status') seen++
    if (metric.name === 'hw.status') byPid.clear()
    last.set(metric.name, metric)
  },
  emitProcess: (pid, metric) => byPid.set(pid, [...(byPid.get(pid) ?? []), metric]),
  warn: (reason, hint) => console.log(`warning: ${reason}: ${hint}`),
})
source.start()
while (seen === 0 && source.state.reason === '') await sleep(20)
console.log(source.state)
if (source.state.on) {
  const before = process.cpuUsage()
  const from = seen
  while (seen < from + rounds) await sleep(intervalMs)
  const { user, system } = process.cpuUsage(before)
  const measured = seen - from
  // Looking at the event loop costs more than what it looks at.
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  while (seen < from + measured + rounds) await sleep(intervalMs)
  delay.disable()
  for (const metric of [...last.values(), ...[...byPid.values()].flat()]) {
    if (metric.kind !== 'gauge' && metric.kind !== 'sum') continue
    for (const { attributes, value } of metric.points) {
      const { 'hw.name': gpu, ...more } = attributes.toObject()
      const own = Object.entries(more).filter(([key]) => !key.startsWith('hw.') || key === 'hw.gpu.task')
      console.log(`${metric.name} ${gpu} ${own.map(([, of]) => of).join(' ')} ${value} ${metric.unit}`)
    }
  }
  report('gpu.cpu_ms_per_measurement', (user + system) / 1000 / measured, 'ms', 'less')
  report('gpu.longest_hold_ms', delay.max / 1e6 - 1, 'ms', 'less', 'of the event loop')
} else skip(source.state.reason)
source.stop()
