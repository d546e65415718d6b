import { closeSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentProcess } from './agent-process.ts'
import { type SpawnedReceiver, spawnReceiver } from './otlp-receiver.ts'
import { pause, until } from './program.ts'

type Attributes = Readonly<Record<string, unknown>>

/** A span as the receiver got it. */
export interface SpanLine {
  readonly signal: 'traces'
  readonly resource: Attributes
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly flags: number
  readonly startNs: string
  readonly endNs: string
  readonly status: number
  readonly attributes: Attributes
}

interface PointLine {
  readonly attributes: Attributes
  readonly startNs: string
  readonly timeNs: string
  readonly count: number
}

interface MetricLine {
  readonly signal: 'metrics'
  readonly name: string
  readonly resource: Attributes
  readonly points: readonly PointLine[]
}

interface LogLine {
  readonly signal: 'logs'
  readonly body: unknown
}

/** One series of a duration histogram, at its last point. */
export interface Counted {
  readonly metric: string
  readonly resource: Attributes
  readonly attributes: Attributes
  readonly count: number
}

export const server = 2
export const client = 3

const second = 1000

/** A receiver in a process of its own, and what it got. */
export class Telemetry {
  readonly receiver: SpawnedReceiver
  readonly #directory: string
  readonly #file: number
  readonly #series = new Map<string, Counted & { readonly timeNs: bigint }>()
  #spans: SpanLine[] = []
  #bodies: string[] = []
  #at = 0
  #rest = Buffer.alloc(0)
  #marks = 0

  private constructor(receiver: SpawnedReceiver, directory: string, file: string) {
    this.receiver = receiver
    this.#directory = directory
    this.#file = openSync(file, 'r')
  }

  /** Port 0: any that is free. With `only` it knows nothing of resources in which this text does not stand. */
  static async start(port = 0, only = ''): Promise<Telemetry> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-telemetry-'))
    const dump = join(directory, 'received.jsonl')
    return new Telemetry(await spawnReceiver({ port, dump, only }), directory, dump)
  }

  get endpoint(): string {
    return this.receiver.endpoint
  }

  async close(): Promise<void> {
    await this.receiver.close()
    closeSync(this.#file)
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** All spans of exchanges with the server at `port`, of one kind or of both. */
  spans(port: number, kind?: typeof server | typeof client): SpanLine[] {
    this.#read()
    return this.#spans.filter(
      span => span.attributes['server.port'] === port && (kind === undefined || span.kind === kind),
    )
  }

  /** What log records said that are text. */
  bodies(): readonly string[] {
    this.#read()
    return this.#bodies
  }

  /** Series of the duration histograms for which `wanted` says yes. */
  counted(wanted: (series: Counted) => boolean): Counted[] {
    this.#read()
    return [...this.#series.values()].filter(wanted)
  }

  /** How many requests the servers with these pids counted. */
  servedBy(...pids: number[]): number {
    return total(
      this.counted(
        ({ metric, resource }) =>
          metric === 'http.server.request.duration' && pids.includes(Number(resource['process.pid'])),
      ),
    )
  }

  /** How many requests to the server at `port` clients counted. */
  askedOf(port: number): number {
    return total(
      this.counted(
        ({ metric, attributes }) =>
          metric === 'http.client.request.duration' && attributes['server.port'] === port,
      ),
    )
  }

  /** Lets go what it got so far. */
  forget(): void {
    this.#read()
    this.#spans = []
    this.#bodies = []
    this.#series.clear()
  }

  /** Resolves when `count` spans or more are there. */
  async arrived(
    count: number,
    port: number,
    kind?: typeof server | typeof client,
    limitMs = 60 * second,
  ): Promise<void> {
    await until(
      () => `${count} spans of port ${port} are there: ${this.spans(port, kind).length} are`,
      limitMs,
      () => this.spans(port, kind).length >= count,
    )
  }

  /**
   * Resolves when everything that was seen before has been delivered. A request to the agent itself goes through the
   * ring behind all others; then no span may wait for its other side, and the metrics of a later moment must be there.
   */
  async settle(agent: AgentProcess): Promise<void> {
    await pause(20) // the hooks run at the end of a call, when the other side may already have gone on
    const seen = await this.#mark(agent)
    await until(
      'no span waits in the agent',
      60 * second,
      async () => (await agent.metrics()).sum('svc_export_queue_size', 'signal_type="traces"') === 0,
    )
    // A collection is exported in turns, and in any order: what stands beside this process's comes before its next one.
    let latest = seen
    for (let collections = 0; collections < 2; collections++)
      await until('metrics of a later moment are there', 60 * second, () => {
        this.#read()
        const later = [...this.#series.values()].find(
          ({ resource, timeNs }) => resource['process.pid'] === process.pid && timeNs > latest,
        )
        latest = later?.timeNs ?? latest
        return later !== undefined
      })
  }

  /** Sends a request whose span nobody can mistake, until that span is there. Returns when, in nanoseconds. */
  async #mark(agent: AgentProcess): Promise<bigint> {
    for (let attempt = 0; attempt < 20; attempt++) {
      const mark = `/status?mark=${process.pid}-${++this.#marks}`
      await agent.get(mark)
      try {
        await until('', second, () => {
          this.#read()
          return this.#spans.some(span => String(span.attributes['url.full']).endsWith(mark))
        })
        return BigInt(Date.now()) * 1_000_000n
      } catch {
        // The ring was full, or sampling left it out: the next one may get through.
      }
    }
    throw new Error(`no span of a request to the agent came through:\n${agent.logText()}`)
  }

  #read(): void {
    const chunk = Buffer.alloc(1 << 20)
    for (;;) {
      const size = readSync(this.#file, chunk, 0, chunk.length, this.#at)
      if (size === 0) return
      this.#at += size
      const bytes = Buffer.concat([this.#rest, chunk.subarray(0, size)])
      const end = bytes.lastIndexOf(0x0a) + 1
      this.#rest = Buffer.from(bytes.subarray(end))
      for (const line of bytes.toString('utf8', 0, end).split('\n')) if (line !== '') this.#take(line)
    }
  }

  #take(text: string): void {
    const line = JSON.parse(text) as SpanLine | MetricLine | LogLine
    if (line.signal === 'traces') {
      this.#spans.push(line)
      return
    }
    if (line.signal === 'logs' && typeof line.body === 'string') this.#bodies.push(line.body)
    if (line.signal !== 'metrics') return
    for (const point of line.points) {
      const { resource, name } = line
      const { attributes, startNs } = point
      // What processes that ended have in common is their service's, which has no instance but a user, where one is known.
      const {
        'service.name': service,
        'service.instance.id': instance,
        'process.real_user.id': user,
      } = resource
      const key = JSON.stringify([service, instance ?? user, name, attributes, startNs])
      const { count } = point
      this.#series.set(key, { metric: name, resource, attributes, count, timeNs: BigInt(point.timeNs) })
    }
  }
}

function total(series: readonly Counted[]): number {
  return series.reduce((sum, { count }) => sum + count, 0)
}
