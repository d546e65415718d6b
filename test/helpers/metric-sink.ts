// Takes metrics and counts them: OTLP over gRPC and over HTTP, and the remote write of Prometheus, whose packed frames are
// counted in bytes alone. Cheap, and in a process of its own, so that the cost of a receiver is not that of the sender:
// `MetricSink`. The tests' own receiver (otlp-receiver.ts) decodes and keeps what it takes; this one does not.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import { createInterface } from 'node:readline'
import { gunzipSync } from 'node:zlib'
import { Program } from './program.ts'

/** Of what is counted; bytes and requests are those of everything. */
export interface SinkCounts {
  readonly requests: number
  /** Of bodies as they came. */
  readonly bytes: number
  /** Data points (OTLP). */
  readonly points: number
  /** Lines of a metrics page that they stand for: a histogram is its buckets, its sum and its count. */
  readonly samples: number
  /** Points that say that their series ended; they are among `points`, and stand for no sample. */
  readonly ended: number
  /** Bodies that could not be counted in points: remote write, or what is no metrics. */
  readonly uncounted: number
}

interface Ready {
  readonly grpc: number
  readonly http: number
}

export class MetricSink {
  readonly pid: number
  readonly #program: Program<Ready>

  private constructor(program: Program<Ready>) {
    this.#program = program
    this.pid = program.pid
  }

  /** Counts the points of metrics whose name begins with `prefix`. */
  static async start(prefix = ''): Promise<MetricSink> {
    return new MetricSink(await Program.start<Ready>('../../helpers/metric-sink.ts', { prefix }))
  }

  /** `host:port` for OTLP over gRPC. */
  get grpcEndpoint(): string {
    return `127.0.0.1:${this.#program.ready.grpc}`
  }

  /** Base URL for OTLP over HTTP; remote write may have any path of it that is not `/v1/metrics`. */
  get httpUrl(): string {
    return `http://127.0.0.1:${this.#program.ready.http}`
  }

  /** Since the last reset. */
  counts(): Promise<SinkCounts> {
    return this.#program.ask<SinkCounts>('counts')
  }

  async reset(): Promise<void> {
    await this.#program.ask('reset')
  }

  close(): Promise<void> {
    return this.#program.close()
  }
}

/** What an export request holds. Undefined where the bytes are no such request. */
export function countsOfRequest(
  body: Uint8Array,
  prefix = '',
): Pick<SinkCounts, 'points' | 'samples' | 'ended'> | undefined {
  const walk = new RequestWalk(body, Buffer.from(prefix))
  try {
    walk.fields(0, body.length, levels.request!)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
  const { points, samples, ended } = walk
  return { points, samples, ended }
}

/** What to do with a field of metrics.proto, by its number: the bytes of it, or from where its number stands. */
type Step = (walk: RequestWalk, from: number, to: number) => void
type Level = Readonly<Record<number, Step>>

const into =
  (name: string): Step =>
  (walk, from, to) =>
    walk.fields(from, to, levels[name]!)

/** A point that stands for so many samples, and for those that are found in it. */
const point =
  (samples: number, name: string): Step =>
  (walk, from, to) =>
    walk.point(samples, from, to, levels[name]!)

const flags: Step = (walk, from) => walk.flags(from)

const levels: Readonly<Record<string, Level>> = {
  request: { 1: into('resourceMetrics') },
  resourceMetrics: { 2: into('scopeMetrics') },
  scopeMetrics: { 2: into('metric') },
  // The name comes first, as every encoder writes fields in the order of their numbers.
  metric: {
    1: (walk, from, to) => walk.name(from, to),
    5: into('numbers'),
    7: into('numbers'),
    9: into('histograms'),
    11: into('summaries'),
  },
  numbers: { 1: point(1, 'numberPoint') },
  histograms: { 1: point(2, 'histogramPoint') },
  summaries: { 1: point(2, 'summaryPoint') },
  numberPoint: { 8: flags },
  // The counts of buckets are packed, eight bytes each.
  histogramPoint: { 6: (walk, from, to) => walk.more((to - from) / 8), 10: flags },
  summaryPoint: { 6: walk => walk.more(1), 8: flags },
}

class RequestWalk {
  points = 0
  samples = 0
  ended = 0
  readonly #bytes: Uint8Array
  readonly #prefix: Buffer
  #at = 0
  #isCounted = false
  /** Samples of the point that is being read. */
  #found = 0

  constructor(bytes: Uint8Array, prefix: Buffer) {
    this.#bytes = bytes
    this.#prefix = prefix
  }

  name(from: number, to: number): void {
    const prefix = this.#prefix
    this.#isCounted =
      to - from >= prefix.length && prefix.compare(this.#bytes, from, from + prefix.length) === 0
  }

  point(samples: number, from: number, to: number, level: Level): void {
    if (!this.#isCounted) return
    this.#found = samples
    this.fields(from, to, level)
    this.points++
    this.samples += Math.max(0, this.#found)
  }

  more(samples: number): void {
    this.#found += samples
  }

  /** The lowest bit says that the point has no value. */
  flags(at: number): void {
    if ((this.#bytes[at]! & 1) === 0) return
    this.ended++
    this.#found = Number.NEGATIVE_INFINITY
  }

  /** Throws a RangeError at bytes that are no fields. */
  fields(from: number, to: number, level: Level): void {
    this.#at = from
    while (this.#at < to) {
      const tag = this.#varint(to)
      const wireType = tag & 7
      const step = level[tag >>> 3]
      if (wireType === 2) {
        const length = this.#varint(to)
        const begin = this.#at
        const end = begin + length
        if (end <= to) step?.(this, begin, end)
        this.#at = end
      } else {
        const begin = this.#at
        if (wireType === 0) this.#varint(to)
        else if (wireType === 1) this.#at += 8
        else if (wireType === 5) this.#at += 4
        else throw new RangeError(`wire type ${wireType}`)
        step?.(this, begin, this.#at)
      }
      if (this.#at > to) throw new RangeError('a field beyond its message')
    }
  }

  #varint(to: number): number {
    let value = 0
    for (let factor = 1; this.#at < to; factor *= 128) {
      const byte = this.#bytes[this.#at++]!
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
    throw new RangeError('a number beyond its message')
  }
}

class Counter {
  counts = nothing()
  readonly #prefix: string

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  take(body: Buffer, encoding: string | undefined): void {
    const { counts } = this
    counts.requests++
    counts.bytes += body.length
    const found =
      encoding === 'gzip' || encoding === undefined || encoding === 'identity'
        ? countsOfRequest(encoding === 'gzip' ? gunzipSync(body) : body, this.#prefix)
        : undefined
    if (found === undefined) counts.uncounted++
    counts.points += found?.points ?? 0
    counts.samples += found?.samples ?? 0
    counts.ended += found?.ended ?? 0
  }
}

function nothing() {
  return { requests: 0, bytes: 0, points: 0, samples: 0, ended: 0, uncounted: 0 }
}

/** One message of a gRPC call, packed as its own flag says. */
function takeCall(counter: Counter, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  const parts: Buffer[] = []
  stream.on('error', () => {}) // cut by the sender
  stream.on('data', (part: Buffer) => parts.push(part))
  stream.on('end', () => {
    if (stream.destroyed) return
    const message = Buffer.concat(parts)
    counter.take(message.subarray(5), message[0] === 1 ? String(headers['grpc-encoding']) : undefined)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.alloc(5))
  })
}

function takeRequest(counter: Counter, request: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const isOtlp = request.url === '/v1/metrics'
    counter.take(Buffer.concat(parts), isOtlp ? request.headers['content-encoding'] : 'snappy')
    response.writeHead(isOtlp ? 200 : 204, isOtlp ? { 'Content-Type': 'application/x-protobuf' } : {}).end()
  })
}

async function main({ prefix = '' }: { prefix?: string }): Promise<void> {
  const counter = new Counter(prefix)
  const grpc = createHttp2Server()
  grpc.on('stream', (stream, headers) => takeCall(counter, stream, headers))
  const http = createServer({ keepAliveTimeout: 300_000 }, (request, response) =>
    takeRequest(counter, request, response),
  )
  for (const server of [grpc, http])
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', () => resolve()))
  const say = (value: unknown): void => console.log(JSON.stringify(value))
  const input = createInterface(process.stdin)
  input.on('line', line => {
    if (line === 'reset') counter.counts = nothing()
    say(counter.counts)
  })
  input.once('close', () => process.exit(0))
  const portOf = (server: { address(): unknown }) => (server.address() as { port: number }).port
  say({ grpc: portOf(grpc), http: portOf(http) })
}

if (import.meta.main) await main(JSON.parse(process.argv[2]!))
