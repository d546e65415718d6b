import { AgentProcess, type Tree } from '../agent-process.ts'
import type { Line, ReceivedFrame, ReceivedSample } from '../otlp-items.ts'
import { type Receiver, startReceiver } from '../otlp-receiver.ts'
import { until } from '../program.ts'
import { type Folded, foldedOf, mapFrames, shareOf } from './folded.ts'

/** A sample as the receiver got it, with what its profile says of it. */
export interface HostSample extends ReceivedSample {
  readonly kind: 'cpu' | 'memory' | 'off_cpu'
  readonly unit: string
  /** Milliseconds since the epoch. */
  readonly startMs: number
  readonly endMs: number
  readonly resource: Readonly<Record<string, unknown>>
}

export type Choice = (sample: HostSample) => boolean

/** The agent with profiles of this host once a second, and a receiver that keeps them. */
export class ProfiledHost {
  readonly agent: AgentProcess
  readonly #receiver: Receiver

  private constructor(agent: AgentProcess, receiver: Receiver) {
    this.agent = agent
    this.#receiver = receiver
  }

  /** `profiling` is laid over the settings of `agent.profiling`. */
  static async start(profiling: Tree = {}): Promise<ProfiledHost> {
    const receiver = await startReceiver({ keep: true, maxMessageBytes: 64 << 20 })
    const settings: Tree = { enabled: true, sample_rate: 997, interval: '1s', ...profiling }
    try {
      const agent = await AgentProcess.start({
        endpoint: receiver.endpoint,
        // Requests of this host are not what is measured.
        config: { agent: { profiling: settings, ebpf: { network: { enabled: false } } } },
      })
      const refused = agent.log.find(({ msg }) => msg === 'cannot start the profiler')
      if (refused) {
        await agent.kill()
        throw new Error(`the agent takes no profiles: ${refused.reason}`)
      }
      return new ProfiledHost(agent, receiver)
    } catch (error) {
      await receiver.close()
      throw error
    }
  }

  /** What was told so far. */
  samples(choice: Choice): HostSample[] {
    const chosen: HostSample[] = []
    for (const line of this.#receiver.lines)
      if (line.signal === 'profiles')
        for (const sample of samplesOf(line)) if (choice(sample)) chosen.push(sample)
    return chosen
  }

  /** Resolves when the chosen samples fulfil a condition, with those. `what` names it in the error. */
  async wait(
    what: string,
    choice: Choice,
    enough: (samples: readonly HostSample[]) => boolean,
    timeoutMs = 60_000,
  ): Promise<HostSample[]> {
    let seen: HostSample[] = []
    await until(
      () => `${what}; so far ${describe(seen)}\n${this.agent.logText().slice(-4000)}`,
      timeoutMs,
      () => {
        seen = this.samples(choice)
        return enough(seen)
      },
    )
    return seen
  }

  /** Resolves when profiles are here of the time until now, with the chosen samples of `sinceMs` on. */
  async upToNow(choice: Choice, sinceMs = 0): Promise<HostSample[]> {
    const now = Date.now()
    const { lines } = this.#receiver
    const arrived = () => lines.some(line => line.signal === 'profiles' && Number(line.startNs) / 1e6 >= now)
    // The next interval has begun: this one's profiles were sent before it, in the same order.
    await until('profiles of the time until now are here', 60_000, arrived)
    return this.samples(sample => sample.startMs >= sinceMs && sample.startMs < now && choice(sample))
  }

  async close(): Promise<void> {
    await this.agent.stop()
    await this.#receiver.close()
  }
}

function* samplesOf(line: Line): Generator<HostSample> {
  const { kind, unit, period } = line
  const startMs = Number(line.startNs) / 1e6
  const endMs = startMs + Number(line.durationNs) / 1e6
  const resource = line.resource as Record<string, unknown>
  for (const sample of line.samples as ReceivedSample[])
    yield {
      ...sample,
      kind: kinds[String(kind)]!,
      unit: String(unit),
      value: unit === 'count' ? sample.value * Number(period) : sample.value,
      startMs,
      endMs,
      resource,
    }
}

/** By names of sample types (src/foundation/model/profile-type.ts). */
const kinds: Readonly<Record<string, HostSample['kind']>> = {
  cpu: 'cpu',
  samples: 'cpu',
  alloc_space: 'memory',
  page_faults: 'memory',
  off_cpu: 'off_cpu',
}

/** The samples of the last interval among these. */
export function latest(samples: readonly HostSample[]): readonly HostSample[] {
  const startMs = Math.max(...samples.map(sample => sample.startMs))
  return samples.filter(sample => sample.startMs === startMs)
}

/** Of processes that run this file, which may be gone from its place. */
export function ofProgram(path: string, kind: HostSample['kind'] = 'cpu'): Choice {
  return ({ kind: own, resource }) =>
    own === kind && String(resource['process.executable.path']).replace(/ \(deleted\)$/, '') === path
}

/** With a frame of code of this file, by any of its names. */
export function inFile(path: string, kind: HostSample['kind'] = 'cpu'): Choice {
  return ({ kind: own, frames }) => own === kind && frames.some(frame => frame.file === path)
}

export function isUser({ type }: ReceivedFrame): boolean {
  return type !== 'kernel'
}

/** Whether a frame has a name rather than the reason why not. */
export function isNamed({ name }: ReceivedFrame): boolean {
  return name !== '' && !(name.startsWith('[') && name.endsWith(']'))
}

/** Whether a stack says that it is not whole: its root tells why. */
export function isFlagged({ frames }: HostSample): boolean {
  return /^\[(incomplete|lost)\b/.test(frames.at(-1)?.name ?? '')
}

/** Names of the frames of user space, root first, weighed by the samples' values. */
export function fold(
  samples: readonly HostSample[],
  keep: (frame: ReceivedFrame) => boolean = isUser,
): Folded {
  return mapFrames(
    foldedOf(
      samples.map(({ frames, value }) => [
        frames
          .filter(keep)
          .map(frame => frame.name.replaceAll(';', ':'))
          .toReversed()
          .join(';'),
        value,
      ]),
    ),
    frames => frames.filter(frame => frame !== ''),
  )
}

/** Which part of all values has a stack for which `test` holds: 0 to 1. Names are root first, of user space. */
export function partOf(samples: readonly HostSample[], test: (names: readonly string[]) => boolean): number {
  return shareOf(fold(samples), test)
}

/** Nanoseconds or bytes of all of them. */
export function sumOf(samples: readonly HostSample[]): number {
  return samples.reduce((sum, { value }) => sum + value, 0)
}

/** For messages: the stacks with the largest values, root first, with those of the kernel. */
export function describe(samples: readonly HostSample[]): string {
  const stacks = [...fold(samples, () => true)].toSorted((a, b) => b[1] - a[1]).slice(0, 5)
  return `${samples.length} samples: ${stacks.map(([stack, value]) => `${stack} ${value}`).join('\n')}`
}
