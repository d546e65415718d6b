import { Turn } from '../../../foundation/lib/turn.ts'
import { type Cpu, cpuList, frequencyHelp, parseCpus, speedName } from './_cpus.ts'
import { someTextAt } from './_small-file.ts'
import { collector, type Family, gauge, NoData, type Tree } from './collector.ts'

/** Attribute of a CPU, in kHz → its family. */
const attributes: readonly (readonly [file: string, family: Family])[] = [
  [
    'cpuinfo_cur_freq',
    gauge('cpu_frequency_hertz', frequencyHelp, {
      labels: ['cpu'],
      otel: speedName,
    }),
  ],
  [
    'cpuinfo_avg_freq',
    gauge('cpu_frequency_avg_hertz', 'Mean frequency of the CPU over a short time before (Linux 6.15).', {
      labels: ['cpu'],
    }),
  ],
  [
    'cpuinfo_min_freq',
    gauge('cpu_frequency_min_hertz', 'Lowest frequency that the CPU can run at.', { labels: ['cpu'] }),
  ],
  [
    'cpuinfo_max_freq',
    gauge('cpu_frequency_max_hertz', 'Highest frequency that the CPU can run at.', {
      labels: ['cpu'],
      otel: { ...speedName, name: 'hw.cpu.speed.limit', constant: { 'hw.limit_type': 'max' } },
    }),
  ],
  [
    'scaling_cur_freq',
    gauge('cpu_scaling_frequency_hertz', 'Frequency that the CPU was last set to.', {
      labels: ['cpu'],
      otel: {
        name: 'system.cpu.frequency',
        unit: 'Hz',
        kind: 'gauge',
        attributes: { cpu: 'cpu.logical_number' },
      },
    }),
  ],
  [
    'scaling_min_freq',
    gauge('cpu_scaling_frequency_min_hertz', 'Lowest frequency that the CPU may be set to.', {
      labels: ['cpu'],
    }),
  ],
  [
    'scaling_max_freq',
    gauge('cpu_scaling_frequency_max_hertz', 'Highest frequency that the CPU may be set to.', {
      labels: ['cpu'],
    }),
  ],
]
const governor = gauge('cpu_scaling_governor', 'Whether a rule for the frequency of the CPU is in use.', {
  labels: ['cpu', 'governor'],
})

/** Readings of one CPU. */
interface Frequencies {
  readonly number: string
  /** In Hz, in the order of `attributes`. */
  readonly hertz: readonly (number | undefined)[]
  readonly governor: string | undefined
  readonly governors: readonly string[]
}

/** Frequencies of CPUs and their rules, from /sys/devices/system/cpu (kernel, admin-guide/pm/cpufreq). */
export const cpufreq = collector({
  name: 'cpufreq',
  summary: 'Frequencies of CPUs',
  source: '/sys/devices/system/cpu/cpu*/cpufreq',
  enabledByDefault: true,
  metrics: [...attributes.map(([, family]) => family), governor],
  start: (_options, { host }) => {
    const { sys } = host
    const cpus = cpuList(sys)
    const governorsOf = lists(sys)
    let all: readonly Frequencies[] = []
    return {
      // Kernels 4.13 to 5.17 take 10 ms for the frequency of each CPU.
      async wait(signal) {
        const offline = offlineCpus(sys)
        const read: Frequencies[] = []
        const turn = new Turn(2)
        for (const cpu of cpus()) {
          if (offline.has(cpu.number) || !sys.exists(`${cpu.path}/cpufreq`)) continue
          read.push(frequencies(sys, cpu, governorsOf))
          await turn.rest()
          signal.throwIfAborted()
        }
        all = read
      },
      collect(readings) {
        for (const { number, hertz, governor: current, governors } of all) {
          for (let i = 0; i < attributes.length; i++)
            if (hertz[i] !== undefined) readings.set(attributes[i]![1], hertz[i]!, number)
          if (current === undefined) continue
          for (const name of governors) readings.set(governor, name === current ? 1 : 0, number, name)
        }
      },
    }
  },
})

function offlineCpus(sys: Tree): ReadonlySet<string> {
  const path = 'devices/system/cpu/offline'
  const text = sys.find(path)
  if (text === undefined) throw new NoData(`${sys.at(path)} not found`)
  return new Set(parseCpus(text, sys.at(path)).map(String))
}

function frequencies(
  sys: Tree,
  { number, path }: Cpu,
  governorsOf: (path: string) => readonly string[],
): Frequencies {
  return {
    number,
    hertz: attributes.map(([file]) => hertz(sys, `${path}/cpufreq/${file}`)),
    governor: someTextAt(sys, `${path}/cpufreq/scaling_governor`),
    governors: governorsOf(`${path}/cpufreq/scaling_available_governors`),
  }
}

function hertz(sys: Tree, path: string): number | undefined {
  const text = sys.find(path)
  // A driver may not know the frequency now.
  if (text === undefined || text === '<unknown>') return undefined
  if (!/^\d{1,15}$/.test(text)) throw new Error(`cannot read ${sys.at(path)}: not a number of kHz`)
  return Number(text) * 1000
}

/** Words of a file. All CPUs usually have the same, so that they are rarely parsed. */
function lists(sys: Tree): (path: string) => readonly string[] {
  let last = ''
  let words: readonly string[] = []
  return path => {
    const text = someTextAt(sys, path) ?? ''
    if (text !== last) {
      words = text.split(' ').filter(word => word !== '')
      last = text
    }
    return words
  }
}
