import type { MemoryGovernor, MemoryKind } from '../../foundation/lib/memory-governor.ts'
import { refusedPrograms } from '../../kernel/loaded.ts'
import type { Finding } from '../../kernel/need.ts'
import type { Profiler } from '../../signals/profiles/profiler.ts'
import { profiles as part, untried, whyOff } from '../agent/kernel-parts.ts'
import { Profiling } from '../agent/profiling.ts'
import { nested, value, values } from '../agent/self-metrics.ts'
import { fact, type Subsystem } from '../agent/subsystem.ts'
import { cpu } from './cpu.ts'
import { discovery } from './discovery.ts'
import { ebpf } from './ebpf.ts'
import { exporting } from './exporting.ts'
import { memory } from './memory.ts'
import { processes } from './processes.ts'
import { runningOf, traces } from './traces.ts'

export const profiles: Subsystem<Profiling> = {
  name: 'profiles',
  keys: ['agent.profiling'],
  banner: 'always',
  source: { id: 'profiles', name: 'profiles', signal: 'profiles' },
  needs: part,
  create: agent => {
    const own = new Profiling({
      config: agent.config,
      pipeline: agent.of(exporting).pipeline,
      processes: agent.of(processes).profiled,
      host: agent.of(discovery).host,
      log: agent.of(ebpf).log,
      links: runningOf(agent.of(traces)),
    })
    govern(agent.of(memory).governor, own)
    agent.of(cpu).governor.register('profiles', own.lever)
    return own
  },
  stop: own => own.stop(),
  prepare: (own, config) => own.prepare(config),
  checks: ({ sampler }) => ({ 'profile programs': programsOf(sampler) }),
  state: ({ profiler, faults, failures }, config) => {
    const off = whyOff(part, config)
    if (off !== undefined) return off
    if (failures.length > 0)
      return { state: 'failed', faults: failures.map(fault => ({ ...fault, fails: 'ebpf' })) }
    const { cpu: onCpu, off_cpu, memory: allocations, sample_rate } = config.agent.profiling
    const kinds = [
      ...(onCpu ? ['on-CPU'] : []),
      ...(off_cpu ? ['off-CPU'] : []),
      ...(allocations ? ['memory'] : []),
    ]
    return {
      state: 'ok',
      detail: `${kinds.join(', ') || 'on request only'} of every process, at ${sample_rate} Hz`,
      faults,
      facts: () => [fact('samples/s per CPU', profiler?.rate ?? 0), fact('stacks', profiler?.stacks ?? 0)],
      items: 'rest',
    }
  },
  metrics: {
    profiling_events_total: values(
      'event',
      'Counters of the sampler: samples by kind, outcomes of stacks, and losses.',
      ({ counters }) => Object.entries(counters).filter(([event]) => !event.endsWith('_ns')),
    ),
    profiling_cpu_seconds_total: values(
      'state',
      'CPU time represented by samples, all CPUs together.',
      ({ sampler, counters: { samples_ns = 0, idle_ns = 0 } }) =>
        sampler && { busy: samples_ns / 1e9, idle: idle_ns / 1e9 },
    ),
    profiling_map_bytes: value('Memory of the sampler’s BPF maps.', ({ sampler }) => sampler?.mapBytes),
    profiling_table_bytes: value(
      'Part of the maps’ memory for unwind tables in use.',
      ({ profiler }) => profiler?.arena.bytes,
    ),
    profiling_symbol_bytes: value(
      'Memory of symbol tables.',
      ({ profiler }) => profiler && (profiler.state?.symbolBytes ?? 0),
    ),
    profiling_frames: value(
      'Distinct user-space frames seen.',
      ({ profiler }) => profiler && (profiler.state?.seen ?? 0),
    ),
    profiling_frames_named: value(
      'Distinct user-space frames with a name.',
      ({ profiler }) => profiler && (profiler.state?.named ?? 0),
    ),
    process_memory_unread_total: nested(({ profiler }) => ({ profiles: profiler?.state?.unread })),
    share_losses_total: nested(({ profiler: { arena, state } = {} }) => ({
      unwind_tables: arena?.losses,
      ...state?.shares,
      names: state && { refused: state.namesRefused, taken: 0 },
    })),
  },
}

function programsOf(sampler: Profiling['sampler']): Finding {
  if (sampler === undefined) return untried('profiling is not running', part.topic)
  if (sampler.degraded !== undefined)
    return { fault: 'degraded', detail: `stacks are unwound by frame pointers only: ${sampler.degraded}` }
  const [refused] = refusedPrograms('profile')
  return refused === undefined
    ? { ok: 'programs for unwinding with tables are loaded' }
    : { fault: 'no_waits', detail: `the kernel rejected ${refused.name}: ${refused.refused}` }
}

/** Memory of profiles: stacks and frames in this thread, symbol tables in their own. */
function govern(governor: MemoryGovernor, profiling: Profiling): void {
  const table = (
    name: string,
    kind: MemoryKind,
    bytes: (profiler: Profiler) => number,
    shed: (profiler: Profiler, bytes: number) => number,
    share?: number,
  ) =>
    governor.register({
      name,
      kind,
      ...(share !== undefined && { share }),
      bytes: () => (profiling.profiler ? bytes(profiling.profiler) : 0),
      shed: wanted => (profiling.profiler ? shed(profiling.profiler, wanted) : 0),
    })
  governor.register({
    name: 'processes in profiles, by program',
    kind: 'cache',
    bytes: () => profiling.groups.bytes,
    shed: () => profiling.groups.shed(),
  })
  table(
    'stacks of profiles',
    'detail',
    ({ frames, worker }) => frames.bytes + worker.stackBytes,
    ({ frames }, bytes) => frames.shed(bytes),
  )
  table(
    'counts of stacks',
    'detail',
    ({ counts }) => counts.reduce((sum, totals) => sum + totals.bytes, 0),
    ({ counts }) => counts.reduce((sum, totals) => sum + totals.shed(), 0),
  )
  table(
    'files of profiles',
    'cache',
    ({ files }) => files.bytes,
    ({ files }, bytes) => files.shed(bytes),
    // An evicted file is read again when needed.
    1 / 2,
  )
  table('symbols', 'cache', ({ state }) => state?.symbolBytes ?? 0, shedSymbols)
}

/** Asks the thread to release symbol tables. Returns the bytes it uses. */
function shedSymbols({ state, worker }: Profiler, bytes: number): number {
  const held = state?.symbolBytes ?? 0
  return held > 0 && worker.send({ kind: 'shed', bytes }) ? Math.min(held, bytes) : 0
}
