import { Turn } from '../../foundation/lib/turn.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Profile, Sample } from '../../foundation/model/profile.ts'
import type { ProfiledGroup, ProfileRequest, TakenProfile } from '../../foundation/model/taken-profile.ts'
import { type FlameTree, FlameTreeBuilder, mostTreeNodes } from './flame-tree.ts'
import { printable } from './frame-text.ts'

/** Selection of a recorded profile. */
export type Asked = Pick<ProfileRequest, 'kind' | 'seconds' | 'pid' | 'service'>

/** A recorded profile for display: the tree of all its groups, and its measurements. */
export interface FlameGraph {
  readonly title: string
  readonly kind: Profile['kind']
  readonly unit: string
  /** Microseconds since the epoch. */
  readonly startUs: number
  readonly durationUs: number
  /** Hz of CPU time; 0 without samples. */
  readonly rate: number
  /** Number of samples according to the periods; 0 without a period. */
  readonly samples: number
  readonly tree: FlameTree
  /** Largest first. */
  readonly processes: readonly {
    readonly service: string
    readonly executable: string
    readonly pids: readonly number[]
    readonly value: number
  }[]
  /** CPU time of the whole host during the recording. */
  readonly busyNs: number
  readonly idleNs: number
  readonly lostSamples: number
}

const units = { cpu: 'nanoseconds', memory: 'bytes', off_cpu: 'nanoseconds' } as const

/** Builds the flame graph of a recorded profile, in slices, with at most `mostNodes` nodes. */
export async function flameGraph(
  taken: TakenProfile,
  asked: Asked,
  mostNodes = mostTreeNodes,
): Promise<FlameGraph> {
  const title = titleOf(taken, asked)
  const builder = new FlameTreeBuilder(title)
  const turn = new Turn(1)
  const processes: FlameGraph['processes'][number][] = []
  let samples = 0
  let sampled = 0
  for (const { service, executable, pids, profile } of taken.groups) {
    const group = builder.group(service, executable)
    let value = 0
    for (const sample of profile.samples) {
      builder.add(group, sample)
      value += sample.value
      if (turn.isOver) await turn.next()
    }
    processes.push({ service: printable(service), executable: printable(executable), pids, value })
    if (profile.period === undefined || !(profile.period > 0)) continue
    samples += Math.round(value / profile.period)
    sampled += value
  }
  return {
    title,
    kind: asked.kind,
    unit: taken.groups[0]?.profile.unit ?? units[asked.kind],
    ...timesOf(taken, asked),
    rate: asked.kind === 'cpu' && sampled > 0 ? Math.round((1e9 * samples) / sampled) : 0,
    samples,
    tree: builder.finish(mostNodes),
    processes: processes.toSorted((a, b) => b.value - a.value),
    busyNs: taken.busyNs,
    idleNs: taken.idleNs,
    lostSamples: taken.lostSamples,
  }
}

/** All groups as one profile, whose samples have `service.name` and `process.executable.path`. */
export function wholeProfile(taken: TakenProfile, asked: Asked): Profile {
  const period = meanPeriod(taken)
  return {
    kind: asked.kind,
    unit: taken.groups[0]?.profile.unit ?? units[asked.kind],
    ...timesOf(taken, asked),
    ...(period > 0 && { period }),
    samples: taken.groups.flatMap(labelled),
  }
}

/** Mean period of the samples of all groups; 0 if unknown. Groups differ, as CPUs have different rates. */
function meanPeriod({ groups }: TakenProfile): number {
  let value = 0
  let count = 0
  for (const { profile } of groups) {
    const { period = 0, samples } = profile
    if (!(period > 0)) continue
    const sum = samples.reduce((all, sample) => all + sample.value, 0)
    value += sum
    count += sum / period
  }
  return count > 0 ? Math.round(value / count) : 0
}

function labelled({ service, executable, pids, profile }: ProfiledGroup): Sample[] {
  const made = new Map<Attributes, Attributes>()
  return profile.samples.map(sample => {
    let attributes = made.get(sample.attributes)
    if (attributes === undefined) {
      attributes = new Attributes()
      for (let i = 0; i < sample.attributes.size; i++)
        attributes.add(sample.attributes.keys[i]!, sample.attributes.values[i]!)
      attributes.set('service.name', service)
      if (executable !== '') attributes.set('process.executable.path', executable)
      if (pids.length === 1) attributes.set('process.pid', pids[0]!)
      made.set(sample.attributes, attributes)
    }
    return { ...sample, attributes }
  })
}

function timesOf({ groups }: TakenProfile, { seconds }: Asked): { startUs: number; durationUs: number } {
  if (groups.length === 0)
    return { startUs: Math.round(Date.now() * 1000 - seconds * 1e6), durationUs: seconds * 1e6 }
  return {
    startUs: groups.reduce(
      (least, { profile }) => Math.min(least, profile.startUs),
      Number.POSITIVE_INFINITY,
    ),
    durationUs: groups.reduce((most, { profile }) => Math.max(most, profile.durationUs), 0),
  }
}

/** Title: `shop (pid 12)`, `all processes`. */
export function titleOf({ groups }: TakenProfile, { pid, service }: Asked): string {
  if (pid !== undefined) {
    const name = groups[0]?.service ?? ''
    return printable(name === '' ? `pid ${pid}` : `${name} (pid ${pid})`, 200)
  }
  return service === undefined ? 'all processes' : printable(service, 200)
}
