import fc from 'fast-check'
import { Attributes, type AttributeValue } from '../../src/foundation/model/attributes.ts'
import { LogRecord } from '../../src/foundation/model/log.ts'
import type { Exemplar, Metric, Temporality } from '../../src/foundation/model/metric.ts'
import type {
  Frame,
  FrameType,
  Mapping,
  Profile,
  Sample,
  SpanLink,
} from '../../src/foundation/model/profile.ts'
import { Span, type SpanKind, type StatusCode } from '../../src/foundation/model/span.ts'

/** A time in quarters of a microsecond, as doubles hold those of this century; 0 means unknown. */
export const time: fc.Arbitrary<number> = fc.oneof(
  fc.constant(0),
  fc
    .tuple(fc.integer({ min: 1, max: 2 ** 51 - 1 }), fc.constantFrom(0, 0.25, 0.5, 0.75))
    .map(([us, q]) => us + q),
)

export const text: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'grapheme-ascii', maxLength: 150 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
)

export const attributeValue: fc.Arbitrary<AttributeValue> = fc.oneof(
  text,
  fc.boolean(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.array(text, { maxLength: 4 }),
)

export const attributes: fc.Arbitrary<Attributes> = fc
  .dictionary(fc.string({ minLength: 1, maxLength: 90 }), attributeValue, {
    maxKeys: 8,
    noNullPrototype: true,
  })
  .map(entries => Attributes.of(entries))

function id(length: number): fc.Arbitrary<Uint8Array> {
  return fc.oneof(
    fc.uint8Array({ minLength: length, maxLength: length }),
    fc.constant(new Uint8Array(length)),
  )
}

function fill(to: Attributes, from: Attributes): void {
  for (let i = 0; i < from.size; i++) to.add(from.keys[i]!, from.values[i]!)
}

export const span: fc.Arbitrary<Span> = fc
  .record({
    traceId: id(16),
    spanId: id(8),
    parentSpanId: id(8),
    flags: fc.nat(0x3ff),
    traceState: fc.constantFrom('', 'vendor=1', 'a=b,c=d'),
    name: text,
    kind: fc.constantFrom<SpanKind>(1, 2, 3, 4, 5),
    startUs: time,
    endUs: time,
    status: fc.constantFrom<StatusCode>(0, 2),
    statusMessage: text,
    attributes,
  })
  .map(({ traceId, spanId, parentSpanId, attributes: set, ...plain }) => {
    const made = Object.assign(new Span(), plain)
    made.traceId.set(traceId)
    made.spanId.set(spanId)
    made.parentSpanId.set(parentSpanId)
    fill(made.attributes, set)
    return made
  })

export const logRecord: fc.Arbitrary<LogRecord> = fc
  .record({
    timeUs: time,
    observedUs: time,
    severity: fc.nat(24),
    severityText: fc.constantFrom('', 'WARN', 'note'),
    body: fc.oneof(text, fc.string({ minLength: 100, maxLength: 5000 })),
    eventName: fc.constantFrom('', 'device.app.lifecycle'),
    flags: fc.nat(255),
    traceId: id(16),
    spanId: id(8),
    attributes,
  })
  .map(({ traceId, spanId, attributes: set, ...plain }) => {
    const made = Object.assign(new LogRecord(), plain)
    made.traceId.set(traceId)
    made.spanId.set(spanId)
    fill(made.attributes, set)
    return made
  })

const described = { name: text, description: text, unit: fc.constantFrom('', 's', 'By', '{request}') }
const metadata = fc.constantFrom(undefined, Attributes.of({ 'prometheus.type': 'gauge' }))
const exemplar: fc.Arbitrary<Exemplar> = fc.record({
  timeUs: time,
  value: fc.double(),
  traceId: fc.oneof(id(16), fc.constant(new Uint8Array(0))),
  spanId: fc.oneof(id(8), fc.constant(new Uint8Array(0))),
  attributes,
})
const pointTimes = { attributes, startUs: time, timeUs: time }
const numberPoint = fc.record({ ...pointTimes, value: fc.oneof(fc.maxSafeInteger(), fc.double()) })
const histogramPoint = fc.record({
  ...pointTimes,
  count: fc.maxSafeNat(),
  sum: fc.double(),
  buckets: fc.array(fc.maxSafeNat(), { maxLength: 20 }),
})

const exponentialPoint = fc.record({
  ...pointTimes,
  count: fc.maxSafeNat(),
  sum: fc.double(),
  scale: fc.integer({ min: -10, max: 20 }),
  zeroCount: fc.oneof(fc.constant(0), fc.maxSafeNat()),
  positive: fc.record({
    offset: fc.oneof(fc.integer({ min: -5000, max: 5000 }), fc.integer()),
    counts: fc.array(fc.oneof(fc.nat(300), fc.maxSafeNat()), { maxLength: 200 }),
  }),
  min: fc.option(fc.double(), { nil: undefined }),
  max: fc.option(fc.double(), { nil: undefined }),
})
const temporality = fc.constantFrom<Temporality>(undefined, 'delta')

const summaryPoint = fc
  .record({
    ...pointTimes,
    count: fc.maxSafeNat(),
    sum: fc.double(),
    pairs: fc.array(fc.tuple(fc.double(), fc.double()), { maxLength: 4 }),
  })
  .map(({ pairs, ...point }) => ({
    ...point,
    quantiles: pairs.map(([quantile]) => quantile),
    values: pairs.map(([, value]) => value),
  }))

/** Without exemplars and what else encoders of others do not write. */
export const plainMetric: fc.Arbitrary<Metric> = fc.oneof(
  fc.record({
    ...described,
    kind: fc.constant('gauge' as const),
    points: fc.array(numberPoint, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    ...described,
    kind: fc.constant('sum' as const),
    monotonic: fc.boolean(),
    integer: fc.boolean(),
    temporality,
    points: fc.array(numberPoint, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    ...described,
    kind: fc.constant('histogram' as const),
    bounds: fc.array(fc.double({ noNaN: true }), { maxLength: 19 }),
    temporality,
    points: fc.array(histogramPoint, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    ...described,
    kind: fc.constant('exponential_histogram' as const),
    temporality,
    points: fc.array(exponentialPoint, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    ...described,
    kind: fc.constant('summary' as const),
    points: fc.array(summaryPoint, { minLength: 1, maxLength: 4 }),
  }),
)

/** What a metric, and some of its points, may have beside it. */
const beside = fc.record({
  metadata,
  ends: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
  exemplars: fc.option(fc.array(exemplar, { maxLength: 3 }), { nil: undefined }),
  withoutSum: fc.boolean(),
})

export const metric: fc.Arbitrary<Metric> = fc.oneof(
  plainMetric,
  fc.tuple(plainMetric, beside).map(([plain, { metadata, ends, exemplars, withoutSum }]) => {
    const hasExemplars =
      exemplars !== undefined && 'exponential_histogram summary'.includes(plain.kind) === false
    const points = (plain.points as readonly object[]).map((point, i) => ({
      ...point,
      ...(hasExemplars ? { exemplars } : {}),
      ...(ends[i] ? { noValue: true } : {}),
      ...(plain.kind === 'histogram' && withoutSum ? { sum: undefined } : {}),
    }))
    return { ...plain, metadata, points } as unknown as Metric
  }),
)

/** Few of everything, so that stacks share functions, files, locations and beginnings. */
const mapping: fc.Arbitrary<Mapping> = fc.record(
  {
    path: fc.constantFrom('', '/usr/bin/shop', '/usr/lib/libgröße.so'),
    buildId: fc.constantFrom('', 'a1b2c3d4', 'ffff'),
    hash: fc.constantFrom('00112233445566778899aabbccddeeff', 'ffeeddccbbaa99887766554433221100'),
    start: fc.constantFrom(0, 0x1000, 2 ** 47),
    limit: fc.constantFrom(2 ** 47 + 1, 2 ** 48),
    offset: fc.constantFrom(0, 0x1000),
  },
  { noNullPrototype: true },
)

const place: fc.Arbitrary<Pick<Frame, 'mapping' | 'address'>> = fc.oneof(
  fc.constant({}),
  mapping.map(mapping => ({ mapping })),
  fc.record({ mapping, address: fc.oneof(fc.constantFrom(1, 0x1234), fc.integer({ min: 1, max: 2 ** 48 })) }),
)

const newFrame: fc.Arbitrary<Frame> = fc
  .tuple(
    fc.record(
      {
        name: fc.constantFrom('main', 'parse', 'read', '[unknown: no symbols]', 'größe'),
        file: fc.constantFrom('', 'main.c', 'parse.c'),
        line: fc.nat(3),
        systemName: fc.constantFrom('_Z4mainv', '_Z5parsev'),
        type: fc.constantFrom<FrameType>('native', 'kernel', 'go', 'cpython', 'v8js'),
      },
      { requiredKeys: ['name', 'file', 'line'], noNullPrototype: true },
    ),
    place,
  )
  .map(([named, placed]) => ({ ...named, ...placed }))

/** Mostly the same objects, as the profiler has them, and some that only have the same content. */
const frames: readonly Frame[] = fc.sample(newFrame, { numRuns: 8, seed: 7 })
const frame: fc.Arbitrary<Frame> = fc.oneof(
  { arbitrary: fc.constantFrom(...frames), weight: 3 },
  { arbitrary: fc.constantFrom(...frames).map(each => ({ ...each })), weight: 1 },
  { arbitrary: newFrame, weight: 2 },
)

const link: fc.Arbitrary<SpanLink> = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 255 }))
  .map(([trace, span]) => ({ traceId: new Uint8Array(16).fill(trace), spanId: new Uint8Array(8).fill(span) }))

/** A sample has a link rather by chance: most threads serve no request. */
const sample: fc.Arbitrary<Sample> = fc.record(
  {
    frames: fc.array(frame, { maxLength: 6 }),
    value: fc.maxSafeNat(),
    attributes: fc
      .dictionary(
        fc.constantFrom('thread.id', 'thread.name', 'k'),
        fc.oneof(fc.nat(3), fc.boolean(), fc.constantFrom('a', '3', ''), fc.array(text, { maxLength: 2 })),
        { noNullPrototype: true },
      )
      .map(entries => Attributes.of(entries)),
    link,
  },
  { requiredKeys: ['frames', 'value', 'attributes'], noNullPrototype: true },
)

const profileBody = {
  unit: fc.constantFrom('nanoseconds', 'count', 'bytes'),
  startUs: time,
  durationUs: fc.nat(60_000_000),
  samples: fc.array(sample, { minLength: 1, maxLength: 12 }),
}

export const profile: fc.Arbitrary<Profile> = fc.oneof(
  fc.record(
    {
      kind: fc.constantFrom('cpu' as const, 'memory' as const),
      period: fc.integer({ min: 1, max: 2 ** 40 }),
      ...profileBody,
    },
    { requiredKeys: ['kind', 'unit', 'startUs', 'durationUs', 'samples'], noNullPrototype: true },
  ),
  fc.record({ kind: fc.constant('off_cpu' as const), ...profileBody }, { noNullPrototype: true }),
)
