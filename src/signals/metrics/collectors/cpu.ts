import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { boolean, regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { type Cpu, cpuList, frequencyHelp, parseCpus, speedName } from './_cpus.ts'
import { TableFile } from './_table-file.ts'
import { collector, counter, type Family, gauge, type Host, type Readings, type Tree } from './collector.ts'

const seconds = counter('cpu_seconds_total', 'Time that a CPU was in a mode.', {
  labels: ['cpu', 'mode'],
  otel: {
    name: 'system.cpu.time',
    unit: 's',
    kind: 'counter',
    attributes: { cpu: 'cpu.logical_number', mode: 'cpu.mode' },
    values: { irq: 'interrupt' },
  },
})
const guestSeconds = counter(
  'cpu_guest_seconds_total',
  'Time that a CPU ran virtual machines; it is part of the modes user and nice too.',
  { labels: ['cpu', 'mode'] },
)
const coreThrottles = counter('cpu_core_throttles_total', 'Times that a core was slowed down for its heat.', {
  labels: ['core', 'package'],
})
const packageThrottles = counter(
  'cpu_package_throttles_total',
  'Times that a processor was slowed down for its heat.',
  { labels: ['package'] },
)
const isolated = gauge('cpu_isolated', 'Always 1, for each CPU that the scheduler leaves alone.', {
  labels: ['cpu'],
})
const online = gauge('cpu_online', 'Whether a CPU is switched on.', { labels: ['cpu'] })
const info = gauge('cpu_info', 'Always 1; the labels describe a CPU.', {
  labels: [
    'cachesize',
    'core',
    'cpu',
    'family',
    'microcode',
    'model',
    'model_name',
    'package',
    'stepping',
    'vendor',
  ],
})
const flagInfo = gauge('cpu_flag_info', 'Always 1, for each feature of the first CPU that was asked for.', {
  labels: ['flag'],
})
const bugInfo = gauge('cpu_bug_info', 'Always 1, for each known flaw of the first CPU that was asked for.', {
  labels: ['bug'],
})
const frequency = gauge('cpu_frequency_hertz', frequencyHelp, {
  labels: ['core', 'cpu', 'package'],
  otel: speedName,
})

const modes = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal'] as const
const guestModes = ['user', 'nice'] as const
const columns = modes.length + guestModes.length
const idle = modes.indexOf('idle')
/** Ticks of /proc/stat, on all architectures of the agent (proc(5), USER_HZ). */
const ticksPerSecond = 100
/** A smaller decrease of idle time is a kernel bug in the accounting; a larger one means that the CPU was replaced. */
const resetTicks = 3 * ticksPerSecond

/** Time, state and description of CPUs, from /proc/stat, /proc/cpuinfo and /sys/devices/system/cpu. */
export const cpu = collector({
  name: 'cpu',
  summary: 'Time and state of CPUs',
  source: '/proc/stat',
  enabledByDefault: true,
  metrics: [
    seconds,
    guestSeconds,
    coreThrottles,
    packageThrottles,
    isolated,
    online,
    info,
    flagInfo,
    bugInfo,
    frequency,
  ],
  options: {
    guest: key(boolean, true, 'Shows guest time.'),
    info: key(boolean, false, 'Shows `cpu_info`.'),
    info_flags_include: key(
      regex,
      '',
      'Regular expression for CPU flags to show; enables `info`; empty for none.',
    ),
    info_bugs_include: key(
      regex,
      '',
      'Regular expression for CPU bugs to show; enables `info`; empty for none.',
    ),
  },
  flags: {
    info_flags_include: 'cpu.info.flags-include',
    info_bugs_include: 'cpu.info.bugs-include',
  },
  start: (options, { host }) => {
    const flags = options.info_flags_include
    const bugs = options.info_bugs_include
    const describe =
      options.info || flags !== '' || bugs !== ''
        ? description(host, patternOf(flags), patternOf(bugs))
        : undefined
    const times = new Times(host, options.guest)
    const cpus = cpuList(host.sys)
    const alone = isolation(host.sys)
    const states = new States(host.sys)
    return {
      collect(readings) {
        describe?.(readings)
        times.collect(readings)
        for (const number of alone()) readings.set(isolated, 1, number)
        states.collect(cpus(), readings)
      },
    }
  },
})

function patternOf(source: string): RegExp | undefined {
  return source === '' ? undefined : linearRegExp(source)
}

/** Maximum times of one CPU so far, in ticks by column of /proc/stat. */
interface Time {
  readonly number: string
  readonly ticks: Float64Array
  round: number
}

/** Times that never decrease, unless a CPU was replaced: hot-plugging and some kernels decrease them. */
class Times {
  readonly #file: TableFile
  readonly #guest: boolean
  readonly #byName = new Map<string, Time>()
  readonly #now = new Float64Array(columns)
  #round = 0

  constructor(host: Host, guest: boolean) {
    this.#file = new TableFile(host.proc, 'stat')
    this.#guest = guest
  }

  collect(readings: Readings): void {
    const file = this.#file.read()
    this.#round++
    let count = 0
    // The kernel writes the CPUs first.
    while (file.line() && file.starts('cpu')) {
      const name = file.text()
      if (name === 'cpu') continue
      // Kernels before 2.6.33 have fewer columns.
      for (let i = 0; i < columns; i++) this.#now[i] = i > idle && file.done ? 0 : file.count()
      const time = this.#time(name)
      time.round = this.#round
      count++
      this.#advance(time.ticks)
      this.#show(readings, time)
    }
    if (count === 0) throw file.fault('no CPUs found')
    if (count < this.#byName.size)
      for (const [name, { round }] of this.#byName) if (round < this.#round) this.#byName.delete(name)
  }

  #time(name: string): Time {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    if (!/^cpu\d+$/.test(name)) throw this.#file.fault('the name of a CPU has no number')
    const time = { number: name.slice(3), ticks: new Float64Array(columns), round: 0 }
    this.#byName.set(name, time)
    return time
  }

  #advance(ticks: Float64Array): void {
    const now = this.#now
    if (ticks[idle]! - now[idle]! >= resetTicks) ticks.fill(0)
    for (let i = 0; i < columns; i++) if (now[i]! > ticks[i]!) ticks[i] = now[i]!
  }

  #show(readings: Readings, { number, ticks }: Time): void {
    for (let i = 0; i < modes.length; i++)
      readings.set(seconds, ticks[i]! / ticksPerSecond, number, modes[i]!)
    if (!this.#guest) return
    for (let i = 0; i < guestModes.length; i++)
      readings.set(guestSeconds, ticks[modes.length + i]! / ticksPerSecond, number, guestModes[i]!)
  }
}

/** Function that reads the numbers of isolated CPUs. */
function isolation(sys: Tree): () => readonly string[] {
  const path = 'devices/system/cpu/isolated'
  let text = ''
  let numbers: readonly string[] = []
  return () => {
    const now = sys.find(path) ?? ''
    if (now !== text) {
      numbers = parseCpus(now, sys.at(path)).map(String)
      text = now
    }
    return numbers
  }
}

/** CPU state from /sys: throttling counts, and which CPUs are online. Files are searched once. */
class States {
  readonly #sys: Tree
  #cpus: readonly Cpu[] = []
  #files: readonly { readonly family: Family; readonly path: string; readonly labels: readonly string[] }[] =
    []
  #online: readonly { readonly number: string; readonly value: number }[] = []

  constructor(sys: Tree) {
    this.#sys = sys
  }

  collect(cpus: readonly Cpu[], readings: Readings): void {
    if (cpus !== this.#cpus) {
      this.#files = this.#find(cpus)
      this.#online = this.#states(cpus)
      this.#cpus = cpus
    }
    for (const { family, path, labels } of this.#files) {
      const count = this.#sys.number(path)
      if (count !== undefined) readings.set(family, count, labels[0], labels[1])
    }
    for (const { number, value } of this.#online) readings.set(online, value, number)
  }

  /** One file for each core and each processor: all their threads have equal values. */
  #find(cpus: readonly Cpu[]) {
    const sys = this.#sys
    const found = new Map<string, { family: Family; path: string; labels: string[] }>()
    const add = (family: Family, path: string, labels: string[]) => {
      const id = `${family.name};${labels.join(';')}`
      if (!found.has(id) && sys.exists(path)) found.set(id, { family, path, labels })
    }
    for (const { path } of cpus) {
      const processor = sys.number(`${path}/topology/physical_package_id`)
      const core = sys.number(`${path}/topology/core_id`)
      if (processor === undefined || core === undefined) continue
      add(coreThrottles, `${path}/thermal_throttle/core_throttle_count`, [String(core), String(processor)])
      add(packageThrottles, `${path}/thermal_throttle/package_throttle_count`, [String(processor)])
    }
    return [...found.values()]
  }

  /** Nothing if the first CPU cannot be switched off, as in the replaced exporter. */
  #states(cpus: readonly Cpu[]) {
    const first = cpus[0]
    if (first === undefined || !this.#sys.exists(`${first.path}/online`)) return []
    return cpus.map(({ number, path }) => ({
      number,
      value: this.#sys.find(`${path}/online`) === '1' ? 1 : 0,
    }))
  }
}

/** Shows /proc/cpuinfo (arch/x86/kernel/cpu/proc.c, arch/arm64/kernel/cpuinfo.c). */
function description(host: Host, flags: RegExp | undefined, bugs: RegExp | undefined) {
  return (readings: Readings): void => {
    const all = parseCpuinfo(host.proc.text('cpuinfo'))
    if (all.length === 0) throw new Error(`cannot read ${host.proc.at('cpuinfo')}: no CPUs found`)
    for (const fields of all) {
      const of = (name: string) => fields.get(name) ?? ''
      const number = of('processor')
      readings.setAll(info, 1, [
        of('cache size'),
        of('core id'),
        number,
        of('cpu family'),
        of('microcode'),
        of('model'),
        of('model name'),
        of('physical id'),
        of('stepping'),
        fields.get('vendor_id') ?? of('vendor'),
      ])
      const megahertz = Number.parseFloat(of('cpu MHz'))
      if (megahertz >= 0)
        readings.setAll(frequency, megahertz * 1e6, [of('core id'), number, of('physical id')])
    }
    const first = all[0]!
    showMatches(readings, flagInfo, first.get('flags') ?? first.get('Features'), flags)
    showMatches(readings, bugInfo, first.get('bugs'), bugs)
  }
}

function showMatches(readings: Readings, family: Family, words = '', pattern?: RegExp): void {
  if (pattern === undefined) return
  for (const word of words.split(' ')) if (word !== '' && pattern.test(word)) readings.set(family, 1, word)
}

/** Fields of each processor by name. Lines before the first one, or after an empty line, belong to none. */
export function parseCpuinfo(text: string): readonly ReadonlyMap<string, string>[] {
  const all: Map<string, string>[] = []
  let current: Map<string, string> | undefined
  for (const line of text.split('\n')) {
    if (line.trim() === '') current = undefined
    const colon = line.indexOf(':')
    if (colon < 0) continue
    const name = line.slice(0, colon).trim()
    const value = line.slice(colon + 1).trim()
    if (name === 'processor' && /^\d+$/.test(value)) {
      current = new Map()
      all.push(current)
    }
    current?.set(name, value)
  }
  return all
}
