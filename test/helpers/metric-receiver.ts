import { gunzipSync } from 'node:zlib'
import { type HttpReceiver, startHttpReceiver } from './otlp-http-receiver.ts'
import { decodeRequest } from './otlp-proto.ts'

/** A data point as it came. */
export interface ReceivedPoint {
  readonly metric: string
  readonly kind: string
  readonly resource: Readonly<Record<string, unknown>>
  readonly attributes: Readonly<Record<string, unknown>>
  readonly timeMs: number
  /** The series ended. */
  readonly ended: boolean
  /** Of a gauge or a sum. */
  readonly value: number | undefined
  /** All fields of the point as protobufjs tells them. */
  readonly fields: Readonly<Record<string, unknown>>
}

const kinds = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary'] as const

/** Takes metrics by OTLP/HTTP, and tells their points. */
export class MetricReceiver {
  readonly receiver: HttpReceiver
  #read = 0
  readonly #points: ReceivedPoint[] = []

  private constructor(receiver: HttpReceiver) {
    this.receiver = receiver
  }

  static async start(): Promise<MetricReceiver> {
    return new MetricReceiver(await startHttpReceiver())
  }

  get endpoint(): string {
    return this.receiver.endpoint
  }

  /** All that came, in order. */
  get points(): readonly ReceivedPoint[] {
    const { requests } = this.receiver
    for (; this.#read < requests.length; this.#read++) {
      const { signal, body, headers } = requests[this.#read]!
      if (signal !== 'metrics') continue
      const plain = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
      this.#points.push(...receivedPoints(plain))
    }
    return this.#points
  }

  /** The points of a metric whose resource has this `service.name`. */
  of(metric: string, service: string): readonly ReceivedPoint[] {
    return this.points.filter(point => point.metric === metric && point.resource['service.name'] === service)
  }

  close(): Promise<void> {
    return this.receiver.close()
  }
}

/** The points of an export request, in its order. */
export function receivedPoints(body: Uint8Array): ReceivedPoint[] {
  const { resourceMetrics = [] } = decodeRequest('metrics', body) as unknown as Request
  const points: ReceivedPoint[] = []
  for (const { resource, scopeMetrics = [] } of resourceMetrics)
    for (const { metrics = [] } of scopeMetrics)
      for (const metric of metrics)
        for (const kind of kinds)
          for (const fields of metric[kind]?.dataPoints ?? [])
            points.push({
              metric: metric.name,
              kind,
              resource: plainOf(resource?.attributes),
              attributes: plainOf(fields.attributes),
              timeMs: Number(fields.timeUnixNano ?? 0) / 1e6,
              ended: ((fields.flags ?? 0) & 1) === 1,
              value: fields.asDouble ?? (fields.asInt === undefined ? undefined : Number(fields.asInt)),
              fields: fields as unknown as Record<string, unknown>,
            })
  return points
}

interface KeyValue {
  readonly key: string
  readonly value?: Readonly<Record<string, unknown>>
}

interface Point {
  readonly attributes?: readonly KeyValue[]
  readonly timeUnixNano?: string
  readonly flags?: number
  readonly asDouble?: number
  readonly asInt?: string
}

type Metric = { readonly name: string } & Readonly<
  Partial<Record<(typeof kinds)[number], { readonly dataPoints?: readonly Point[] }>>
>

interface Request {
  readonly resourceMetrics?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] }
    readonly scopeMetrics?: readonly { readonly metrics?: readonly Metric[] }[]
  }[]
}

function plainOf(attributes: readonly KeyValue[] = []): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value ?? { '': '' })[0]]))
}
