import { closeSync, readSync } from 'node:fs'
import { u64 } from '../../../foundation/lib/u64.ts'
import type { OtelName } from '../../../foundation/model/collector.ts'
import { list } from '../../../foundation/schema/collections.ts'
import { boolean, someText, text } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { loadNative, type Native, Unsupported } from '../../../kernel/native.ts'
import { collector, counter, type Env, type Family, NoData, type Tree } from './collector.ts'
import { metricName } from './families.ts'

/** An event to count (perf_event_open(2)). */
interface Event {
  /** Name as in the options. */
  readonly name: string
  readonly type: number
  readonly config: number
  readonly family: Family
}

/** `enum perf_type_id` of linux/perf_event.h. */
const types = { hardware: 0, software: 1, tracepoint: 2, cache: 3 } as const

function perfCounter(metric: string, help: string): Family {
  const labels = ['cpu']
  return counter(
    `perf_${metric}`,
    help,
    metric === 'minor_faults_total' ? { labels, otel: minor } : { labels },
  )
}

/** The major ones are those of /proc/vmstat. */
const minor: OtelName = {
  name: 'system.paging.faults',
  unit: '{fault}',
  kind: 'counter',
  attributes: { cpu: 'cpu.logical_number' },
  constant: { 'system.paging.fault.type': 'minor' },
}

function event(type: number, name: string, config: number, metric: string, what: string): Event {
  return { name, type, config, family: perfCounter(`${metric}_total`, `${what}, by CPU.`) }
}

/** `enum perf_hw_id`. */
const hardware: readonly Event[] = [
  event(types.hardware, 'CpuCycles', 0, 'cpucycles', 'Cycles at the speed that the CPU ran with'),
  event(types.hardware, 'CpuInstr', 1, 'instructions', 'Instructions that were carried out'),
  event(types.hardware, 'CacheRef', 2, 'cache_refs', 'Accesses to the cache'),
  event(types.hardware, 'CacheMisses', 3, 'cache_misses', 'Accesses that the cache could not serve'),
  event(types.hardware, 'BranchInstr', 4, 'branch_instructions', 'Branches that were carried out'),
  event(types.hardware, 'BranchMisses', 5, 'branch_misses', 'Branches that were predicted wrongly'),
  event(
    types.hardware,
    'StalledCyclesFrontend',
    7,
    'stalled_cycles_frontend',
    'Cycles without new instructions',
  ),
  event(
    types.hardware,
    'StalledCyclesBackend',
    8,
    'stalled_cycles_backend',
    'Cycles without room for new work',
  ),
  event(types.hardware, 'RefCpuCycles', 9, 'ref_cpucycles', 'Cycles at the nominal speed'),
]

/** `enum perf_sw_ids`. */
const software: readonly Event[] = [
  event(types.software, 'PageFault', 2, 'page_faults', 'Page faults'),
  event(types.software, 'ContextSwitch', 3, 'context_switches', 'Switches from one task to another'),
  event(types.software, 'CpuMigration', 4, 'cpu_migrations', 'Moves of a task to another CPU'),
  event(types.software, 'MinorFault', 5, 'minor_faults', 'Page faults that needed no reading'),
  event(types.software, 'MajorFault', 6, 'major_faults', 'Page faults that needed reading'),
]

/** `enum perf_hw_cache_id`, and bits of the operation and its result. */
const caches = { l1d: 0, l1i: 1, ll: 2, dtlb: 3, itlb: 4, bpu: 5 } as const
const write = 1 << 8
const miss = 1 << 16

const cache: readonly Event[] = [
  event(types.cache, 'L1DataReadHit', caches.l1d, 'cache_l1d_read_hits', 'Reads of level 1 data'),
  event(
    types.cache,
    'L1DataReadMiss',
    caches.l1d | miss,
    'cache_l1d_read_misses',
    'Misses on reads of level 1 data',
  ),
  event(types.cache, 'L1DataWriteHit', caches.l1d | write, 'cache_l1d_write_hits', 'Writes of level 1 data'),
  event(
    types.cache,
    'L1InstrReadMiss',
    caches.l1i | miss,
    'cache_l1_instr_read_misses',
    'Misses on reads of level 1 instructions',
  ),
  event(types.cache, 'LLReadHit', caches.ll, 'cache_ll_read_hits', 'Reads of the last level'),
  event(
    types.cache,
    'LLReadMiss',
    caches.ll | miss,
    'cache_ll_read_misses',
    'Misses on reads of the last level',
  ),
  event(types.cache, 'LLWriteHit', caches.ll | write, 'cache_ll_write_hits', 'Writes of the last level'),
  event(
    types.cache,
    'LLWriteMiss',
    caches.ll | write | miss,
    'cache_ll_write_misses',
    'Misses on writes of the last level',
  ),
  event(
    types.cache,
    'InstrTLBReadHit',
    caches.itlb,
    'cache_tlb_instr_read_hits',
    'Instruction addresses looked up',
  ),
  event(
    types.cache,
    'InstrTLBReadMiss',
    caches.itlb | miss,
    'cache_tlb_instr_read_misses',
    'Instruction addresses looked up and not found',
  ),
  event(
    types.cache,
    'DataTLBReadHit',
    caches.dtlb,
    'cache_tlb_data_read_hits',
    'Addresses looked up for reads',
  ),
  event(
    types.cache,
    'DataTLBReadMiss',
    caches.dtlb | miss,
    'cache_tlb_data_read_misses',
    'Addresses looked up for reads and not found',
  ),
  event(
    types.cache,
    'DataTLBWriteHit',
    caches.dtlb | write,
    'cache_tlb_data_write_hits',
    'Addresses looked up for writes',
  ),
  event(
    types.cache,
    'DataTLBWriteMiss',
    caches.dtlb | write | miss,
    'cache_tlb_data_write_misses',
    'Addresses looked up for writes and not found',
  ),
  event(types.cache, 'BPUReadHit', caches.bpu, 'cache_bpu_read_hits', 'Branches looked up'),
  event(
    types.cache,
    'BPUReadMiss',
    caches.bpu | miss,
    'cache_bpu_read_misses',
    'Branches looked up and not found',
  ),
]

/** Directories of tracefs, mounted directly or within debugfs. */
const tracing = ['kernel/tracing', 'kernel/debug/tracing']
/** Size of the first version of `struct perf_event_attr`, which all kernels accept. */
const attrBytes = 64
const excludeHypervisor = 1 << 6
const closeOnExec = 1 << 3
const mostCpus = 65_536

/** An event counted on a CPU. */
interface Open {
  readonly fd: number
  readonly family: Family
  readonly cpu: string
}

/** Events of the hardware and the kernel by CPU, counted by perf_event_open(2) since the first reading. */
export const perf = collector({
  name: 'perf',
  summary: 'CPU and kernel counters from perf_event_open(2)',
  source: 'perf_event_open(2)',
  enabledByDefault: false,
  metrics: [...hardware, ...software, ...cache].map(({ family }) => family),
  dynamic: 'One metric for each tracepoint of `tracepoint`.',
  options: {
    cpus: key(text(), '', 'CPUs to count on, such as `0-3,8` or `0-30:2`; empty for all.'),
    tracepoint: key(list(someText), [], 'Tracepoints to count, as `group:name`.'),
    disable_hardware_profilers: key(boolean, false, 'Leaves out counters of the processor.'),
    hardware_profilers: key(list(someText), [], 'Counters of the processor; empty for all.'),
    disable_software_profilers: key(boolean, false, 'Leaves out counters of the kernel.'),
    software_profilers: key(list(someText), [], 'Counters of the kernel; empty for all.'),
    disable_cache_profilers: key(boolean, false, 'Leaves out counters of caches.'),
    cache_profilers: key(list(someText), [], 'Counters of caches; empty for all.'),
  },
  start(options, env) {
    const { sys } = env.host
    const cpus = options.cpus === '' ? undefined : parseCpus(options.cpus)
    const events = [
      ...(options.disable_hardware_profilers ? [] : chosen(hardware, options.hardware_profilers, env)),
      ...(options.disable_software_profilers ? [] : chosen(software, options.software_profilers, env)),
      ...(options.disable_cache_profilers ? [] : chosen(cache, options.cache_profilers, env)),
    ]
    const tracepoints = options.tracepoint.map(parseTracepoint)
    const value = Buffer.alloc(8)
    const open: Open[] = []
    let missing = ''
    let isOpen = false

    return {
      collect(readings) {
        if (!isOpen) openAll()
        for (const { fd, family, cpu } of open) {
          // A CPU that went offline may have no data.
          if (readSync(fd, value, 0, value.length, null) < value.length) continue
          readings.set(family, u64(value, 0), cpu)
        }
        if (missing !== '') throw new Error(missing)
      },
      close: closeAll,
    }

    function closeAll(): void {
      for (const { fd } of open) closeSync(fd)
      open.length = 0
      isOpen = false
    }

    /** Opens all events. Unsupported ones are skipped; throws if none is supported. */
    function openAll(): void {
      const native = loadNative()
      if (native instanceof Unsupported) throw new Error(native.reason)
      const where = cpus ?? parseCpus(sys.find('devices/system/cpu/online') ?? '0')
      missing = ''
      let reason = 'no event selected'
      try {
        for (const each of events) reason = openEvent(native, each, where) || reason
        for (const [group, name, family] of tracepoints) {
          const config = tracepointId(sys, `${group}/${name}`)
          const what = `the tracepoint ${group}:${name}`
          if (config === undefined)
            missing = `cannot count ${what}: not found in ${sys.at(tracing[0]!)}/events`
          else {
            const failure = openEvent(native, { name: what, type: types.tracepoint, config, family }, where)
            if (failure !== '') missing = failure
          }
        }
      } catch (error) {
        closeAll()
        throw error
      }
      if (open.length === 0) throw missing === '' ? new NoData(reason) : new Error(missing)
      isOpen = true
    }

    /** Opens an event on all CPUs. Returns the reason if it is counted on none, otherwise ''. */
    function openEvent(
      native: Native,
      { name, type, config, family }: Event,
      where: readonly number[],
    ): string {
      const before = open.length
      let reason = ''
      for (const cpu of where) {
        try {
          const fd = native.perfEventOpen(attributes(type, config), -1, cpu, -1, closeOnExec)
          open.push({ fd, family, cpu: String(cpu) })
        } catch (error) {
          const { code, message } = error as NodeJS.ErrnoException
          if (code === 'EMFILE' || code === 'ENFILE') throw error
          reason = `cannot count ${name}: ${message}`
          // If it is not permitted on one CPU, it is not on others.
          if (code === 'EACCES' || code === 'EPERM') break
        }
      }
      return open.length > before ? '' : reason
    }
  },
})

/** `struct perf_event_attr` of an event that is counted immediately, in all tasks. */
function attributes(type: number, config: number): Uint8Array {
  const attr = Buffer.alloc(attrBytes)
  attr.writeUInt32LE(type, 0)
  attr.writeUInt32LE(attrBytes, 4)
  attr.writeUInt32LE(config, 8)
  attr.writeUInt32LE(excludeHypervisor, 40)
  return attr
}

/** Events in the list; all events if it has none of them. */
function chosen(events: readonly Event[], names: readonly string[], { log }: Env): readonly Event[] {
  const found = events.filter(({ name }) => names.includes(name))
  const unknown = names.filter(each => !events.some(({ name }) => name === each))
  if (unknown.length > 0) log.warn('unknown perf counters', { names: unknown.join() })
  return found.length === 0 ? events : found
}

/** `0-3,8`, with steps as in `0-30:2`. Throws an error with a reason if invalid. */
export function parseCpus(text: string): readonly number[] {
  const cpus = new Set<number>()
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,5})(?:-(\d{1,5})(?::(\d{1,5}))?)?\s*$/.exec(part)
    const first = Number(match?.[1])
    const last = Number(match?.[2] ?? match?.[1])
    const step = Number(match?.[3] ?? 1)
    if (match === null || last >= mostCpus || step === 0)
      throw new Error(`invalid CPU list ${JSON.stringify(text.slice(0, 100))}; use a form such as 0-3,8`)
    for (let cpu = first; cpu <= last; cpu += step) cpus.add(cpu)
  }
  return [...cpus]
}

function parseTracepoint(text: string): readonly [group: string, name: string, family: Family] {
  const match = /^([A-Za-z0-9_-]+):([A-Za-z0-9_-]+)$/.exec(text)
  if (match === null)
    throw new Error(`invalid tracepoint ${JSON.stringify(text.slice(0, 100))}; use group:name`)
  const [, group = '', name = ''] = match
  return [
    group,
    name,
    perfCounter(metricName(`${group}_${name}`), `The tracepoint ${group}:${name}, by CPU.`),
  ]
}

function tracepointId(sys: Tree, path: string): number | undefined {
  for (const root of tracing) {
    const id = sys.number(`${root}/events/${path}/id`)
    if (id !== undefined) return id
  }
  return undefined
}
