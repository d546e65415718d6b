import fc from 'fast-check'
import { Attributes, type AttributeValue } from '../../src/model/attributes.ts'
import { LogRecord } from '../../src/model/log.ts'
import type { Metric, Temporality } from '../../src/model/metric.ts'
import type { Frame, Profile } from '../../src/model/profile.ts'
import { Span, type SpanKind, type StatusCode } from '../../src/model/span.ts'

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

export const metric: fc.Arbitrary<Metric> = fc.oneof(
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
)

/** Few names, so that stacks share functions, locations and beginnings. */
const frame: fc.Arbitrary<Frame> = fc.record(
  {
    name: fc.constantFrom('main', 'parse', 'read', '[unknown: no symbols]', 'größe'),
    file: fc.constantFrom('', 'main.c', 'parse.c'),
    line: fc.nat(3),
  },
  { noNullPrototype: true },
)

export const profile: fc.Arbitrary<Profile> = fc.record({
  kind: fc.constantFrom('cpu' as const, 'memory' as const, 'off_cpu' as const),
  unit: fc.constantFrom('nanoseconds', 'count', 'bytes'),
  startUs: time,
  durationUs: fc.nat(60_000_000),
  samples: fc.array(
    fc.record({
      frames: fc.array(frame, { maxLength: 6 }),
      value: fc.maxSafeNat(),
      attributes: fc
        .dictionary(
          fc.constantFrom('thread.id', 'thread.name', 'k'),
          fc.oneof(fc.nat(3), fc.constantFrom('a', '3', '')),
          {
            noNullPrototype: true,
          },
        )
        .map(entries => Attributes.of(entries)),
    }),
    { minLength: 1, maxLength: 12 },
  ),
})
