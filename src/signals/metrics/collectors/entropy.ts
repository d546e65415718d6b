import { numberAt } from './_small-file.ts'
import { collector, gauge } from './collector.ts'

const available = gauge('entropy_available_bits', 'Entropy that random numbers can be made from.', {
  unit: 'bit',
})
const poolSize = gauge('entropy_pool_size_bits', 'Most entropy that the kernel keeps.', { unit: 'bit' })

/** Entropy pool, from /proc/sys/kernel/random (random(4)). */
export const entropy = collector({
  name: 'entropy',
  summary: 'Entropy pool',
  source: '/proc/sys/kernel/random',
  enabledByDefault: true,
  metrics: [available, poolSize],
  start: (_options, { host }) => ({
    collect(readings) {
      readings.set(available, numberAt(host.proc, 'sys/kernel/random/entropy_avail'))
      readings.set(poolSize, numberAt(host.proc, 'sys/kernel/random/poolsize'))
    },
  }),
})
