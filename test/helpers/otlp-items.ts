// What receivers of tests have in common: items as plain objects, and answers with a partial success.
import type protobuf from 'protobufjs'
import type { Signal } from '../../src/foundation/model/signal.ts'
import { requestType, responseType } from './otlp-proto.ts'

/** A decoded item: a span, a metric with its points, a log record, or a profile with its samples. */
export type Line = Readonly<Record<string, unknown>> & { readonly signal: Signal; readonly name: string }

/** What a decoded profile has in `samples`; `kind` and `unit` are those of its sample type. Frames are leaf first. */
export interface ReceivedSample {
  readonly frames: readonly ReceivedFrame[]
  readonly value: number
  readonly attributes: Readonly<Record<string, unknown>>
  /** Hexadecimal; '' without a link. */
  readonly traceId: string
  readonly spanId: string
}

export interface ReceivedFrame {
  readonly name: string
  readonly systemName: string
  readonly file: string
  readonly line: number
  readonly address: number
  /** '' where it is not told. */
  readonly type: string
  readonly mapping: { readonly path: string; readonly attributes: Readonly<Record<string, unknown>> }
}

/** What a receiver says to a request that it takes. */
export interface Outcome {
  readonly rejected?: number
  readonly message?: string
  /** Lengthens the message by so many bytes. */
  readonly padding?: number
}

/** The answer to an export request, in protobuf; empty where nothing is to be said. */
export function responseOf(signal: Signal, partial: Outcome): Buffer {
  const type = responseType(signal)
  return Buffer.from(type.encode(type.fromObject(responseObject(signal, partial))).finish())
}

/** The same as an object of OTLP JSON. */
export function responseObject(signal: Signal, { rejected = 0, message = '', padding = 0 }: Outcome): object {
  if (rejected === 0 && message === '' && padding === 0) return {}
  const field = { traces: 'Spans', metrics: 'DataPoints', logs: 'LogRecords', profiles: 'Profiles' }[signal]
  return {
    partialSuccess: { [`rejected${field}`]: String(rejected), errorMessage: message + 'x'.repeat(padding) },
  }
}

// protobufjs decodes to objects whose shape only the definitions know.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Decoded = any

/** The items of a decoded request, in order. */
export function linesOf(signal: Signal, message: protobuf.Message): Line[] {
  return [
    ...lines(signal, requestType(signal).toObject(message, { longs: String, enums: Number, arrays: true })),
  ]
}

/** How many they are to a receiver, which counts the points of metrics. */
export function pointsOf(lines: readonly Line[]): number {
  return lines.reduce((sum, line) => sum + (Array.isArray(line.points) ? line.points.length : 1), 0)
}

function* lines(signal: Signal, request: Decoded): Generator<Line> {
  const [resources, scopes, items] = {
    traces: ['resourceSpans', 'scopeSpans', 'spans'],
    metrics: ['resourceMetrics', 'scopeMetrics', 'metrics'],
    logs: ['resourceLogs', 'scopeLogs', 'logRecords'],
    profiles: ['resourceProfiles', 'scopeProfiles', 'profiles'],
  }[signal] as [string, string, string]
  const profile = (item: Decoded) => profileOf(item, request.dictionary ?? {})
  const shape = { traces: spanOf, metrics: metricOf, logs: logOf, profiles: profile }[signal]
  for (const group of request[resources]) {
    const resource = attributesOf(group.resource?.attributes)
    for (const part of group[scopes])
      for (const item of part[items])
        yield { signal, resource, scope: part.scope?.name ?? '', ...shape(item) }
  }
}

function spanOf(span: Decoded) {
  return {
    name: span.name ?? '',
    kind: span.kind ?? 0,
    traceId: hex(span.traceId),
    spanId: hex(span.spanId),
    parentSpanId: hex(span.parentSpanId),
    traceState: span.traceState ?? '',
    flags: span.flags ?? 0,
    startNs: span.startTimeUnixNano ?? '0',
    endNs: span.endTimeUnixNano ?? '0',
    status: span.status?.code ?? 0,
    statusMessage: span.status?.message ?? '',
    attributes: attributesOf(span.attributes),
  }
}

function metricOf(metric: Decoded) {
  const kind = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary'].find(kind => metric[kind])
  const data = kind ? metric[kind] : {}
  const points = (data.dataPoints ?? []).map((point: Decoded) => ({
    attributes: attributesOf(point.attributes),
    startNs: point.startTimeUnixNano ?? '0',
    timeNs: point.timeUnixNano ?? '0',
    ...(point.flags === 1 ? { noValue: true } : valueIn(kind, point)),
    ...(point.exemplars?.length ? { exemplars: point.exemplars } : {}),
  }))
  return { name: metric.name ?? '', unit: metric.unit ?? '', kind, points }
}

function valueIn(kind: string | undefined, point: Decoded) {
  const counted = { count: Number(point.count ?? 0), sum: point.sum }
  if (kind === 'histogram')
    return { ...counted, bounds: point.explicitBounds, buckets: (point.bucketCounts ?? []).map(Number) }
  if (kind === 'summary') return { ...counted, quantiles: point.quantileValues ?? [] }
  return { value: point.asDouble ?? Number(point.asInt) }
}

function logOf(record: Decoded) {
  return {
    name: record.eventName ?? '',
    body: plainValue(record.body),
    severity: record.severityNumber ?? 0,
    timeNs: record.timeUnixNano ?? '0',
    traceId: hex(record.traceId),
    spanId: hex(record.spanId),
    attributes: attributesOf(record.attributes),
  }
}

function profileOf(profile: Decoded, dictionary: Decoded) {
  const text = (index = 0): string => dictionary.stringTable?.[index] ?? ''
  const attributes = (indices: number[] = []) =>
    Object.fromEntries(
      indices.map(index => {
        const { keyStrindex, value } = dictionary.attributeTable[index]
        return [text(keyStrindex), plainValue(value)]
      }),
    )
  const mapping = (index = 0) => {
    const found = dictionary.mappingTable?.[index] ?? {}
    return { path: text(found.filenameStrindex), attributes: attributes(found.attributeIndices) }
  }
  // A location with several lines is one address of several functions: the first was made part of the second.
  const frames = (index: number): ReceivedFrame[] => {
    const location = dictionary.locationTable[index]
    const type = attributes(location.attributeIndices)['profile.frame.type']
    const lines = location.lines.length > 0 ? location.lines : [{}]
    return lines.map((line: Decoded) => {
      const named = dictionary.functionTable[line.functionIndex ?? 0]
      return {
        name: text(named.nameStrindex),
        systemName: text(named.systemNameStrindex),
        file: text(named.filenameStrindex),
        line: Number(line.line ?? 0),
        address: Number(location.address ?? 0),
        type: type === undefined ? '' : String(type),
        mapping: mapping(location.mappingIndex),
      }
    })
  }
  // Stacks share their locations, and a profile has thousands of both.
  const known: (ReceivedFrame[] | undefined)[] = []
  const samples: ReceivedSample[] = profile.samples.map((sample: Decoded) => {
    const link = dictionary.linkTable?.[sample.linkIndex ?? 0]
    return {
      frames: dictionary.stackTable[sample.stackIndex ?? 0].locationIndices.flatMap((index: number) => {
        known[index] ??= frames(index)
        return known[index]
      }),
      value: sample.values.reduce((sum: number, value: string) => sum + Number(value), 0),
      attributes: attributes(sample.attributeIndices),
      traceId: sample.linkIndex ? hex(link?.traceId) : '',
      spanId: sample.linkIndex ? hex(link?.spanId) : '',
    }
  })
  return {
    name: 'profile',
    kind: text(profile.sampleType?.typeStrindex),
    unit: text(profile.sampleType?.unitStrindex),
    startNs: profile.timeUnixNano ?? '0',
    durationNs: profile.durationNano ?? '0',
    period: Number(profile.period ?? 0),
    samples,
  }
}

function attributesOf(pairs: Decoded[] = []): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, plainValue(value)]))
}

function plainValue(value: Decoded): unknown {
  if (!value) return null
  if (value.intValue !== undefined) return Number(value.intValue)
  if (value.arrayValue) return value.arrayValue.values.map(plainValue)
  return value.stringValue ?? value.doubleValue ?? value.boolValue ?? null
}

function hex(bytes: Uint8Array | undefined): string {
  return bytes ? Buffer.from(bytes).toString('hex') : ''
}
