import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import protobuf, { type Type } from 'protobufjs'
import { decodeRequest, requestType } from '../../../../test/helpers/otlp-proto.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { fieldKey, WireType, Writer } from '../../../foundation/lib/protobuf.ts'
import { signals } from '../../../foundation/model/signal.ts'
import { jsonToRequest } from './from-json.ts'
import { requestToJson } from './json.ts'

const runs = soak ? 5000 : 200

const doubles = fc.oneof(
  fc.double(),
  fc.constantFrom(-0, Number.NaN, Number.POSITIVE_INFINITY, 5e-324, 1e300),
)
const signed64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)
const unsigned64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String)
const bytes = fc.uint8Array({ maxLength: 20 })
const scalars: Record<string, fc.Arbitrary<unknown>> = {
  string: fc.string({ unit: 'grapheme', maxLength: 20 }),
  bytes,
  bool: fc.boolean(),
  double: doubles,
  int32: fc.integer(),
  sint32: fc.integer(),
  uint32: fc.nat(2 ** 32 - 1),
  fixed32: fc.nat(2 ** 32 - 1),
  int64: signed64,
  sfixed64: signed64,
  uint64: unsigned64,
  fixed64: unsigned64,
}

/** Any message of a type of the definitions, as protobufjs takes it. */
function anyMessage(type: Type, depth = 0): fc.Arbitrary<Record<string, unknown>> {
  const oneOfs = new Set(
    type.oneofsArray.filter(({ oneof }) => oneof.length > 1).flatMap(({ oneof }) => oneof),
  )
  const plain: Record<string, fc.Arbitrary<unknown>> = {}
  const chosen: fc.Arbitrary<Record<string, unknown>>[] = [fc.constant({})]
  for (const field of type.fieldsArray) {
    field.resolve()
    const nested = field.resolvedType
    if (nested && 'fields' in nested && depth > (nested.name === 'AnyValue' ? 8 : 12)) continue
    const one = !nested
      ? field.name.endsWith('Id')
        ? fc.uint8Array({ minLength: idLength(field.name), maxLength: idLength(field.name) })
        : scalars[field.type]!
      : 'fields' in nested
        ? fc.constant(0).chain(() => anyMessage(nested, depth + 1))
        : fc.integer({ min: 0, max: 3 })
    const value = field.repeated ? fc.array(one, { minLength: 1, maxLength: 2 }) : one
    if (oneOfs.has(field.name)) chosen.push(value.map(each => ({ [field.name]: each })))
    else plain[field.name] = value
  }
  return fc
    .tuple(fc.record(plain, { requiredKeys: [], noNullPrototype: true }), fc.oneof(...chosen))
    .map(([some, other]) => ({ ...some, ...other }))
}

function idLength(name: string): number {
  return name === 'traceId' || name === 'profileId' ? 16 : 8
}

/** As the definitions decode it, identifiers turned from base64 into digits. */
function reference(type: Type, body: Uint8Array): unknown {
  const object = type.toObject(type.decode(body), { longs: String, bytes: String, enums: Number, json: true })
  return withHexIds(object)
}

function withHexIds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withHexIds)
  if (typeof value !== 'object' || value === null) return value
  const hex = (text: unknown) => Buffer.from(String(text), 'base64').toString('hex')
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      /^(trace|span|parentSpan|profile)Id$/.test(key) ? hex(each) : withHexIds(each),
    ]),
  )
}

for (const signal of signals)
  test(`a request of ${signal} reads the same as by its definitions, and back`, () => {
    const type = requestType(signal)
    fc.assert(
      fc.property(anyMessage(type), message => {
        const body = type.encode(type.fromObject(message)).finish()
        const json = JSON.parse(requestToJson(signal, body))
        assert.deepEqual(json, reference(type, body))
        assert.deepEqual(reference(type, jsonToRequest(signal, json)), reference(type, body))
      }),
      { numRuns: runs, endOnFailure: true },
    )
  })

test('what the random messages leave to chance is there: every field of the table, by its name', () => {
  const names = (text: string) => new Set(text.match(/[a-z]\w+(?=":)/gi))
  for (const signal of signals) {
    const type = requestType(signal)
    const seen = new Set<string>()
    for (const message of fc.sample(anyMessage(type), { numRuns: 400, seed: 7 }))
      for (const name of names(requestToJson(signal, type.encode(type.fromObject(message)).finish())))
        seen.add(name)
    const wanted = new Set<string>()
    const walk = (message: Type, path: readonly Type[]): void => {
      if (path.includes(message)) return
      for (const field of message.fieldsArray) {
        wanted.add(field.name)
        if (field.resolve().resolvedType instanceof protobuf.Type)
          walk(field.resolvedType as Type, [...path, message])
      }
    }
    walk(type, [])
    assert.deepEqual(
      [...wanted].filter(name => !seen.has(name)),
      [],
    )
  }
})

/** A traces request with one span of these bytes. */
function spanRequest(...span: number[]): Buffer {
  let body: number[] = span
  for (const field of [2, 2, 1]) body = [field * 8 + 2, body.length, ...body]
  return Buffer.from(body)
}

const span = (text: string) => `{"resourceSpans":[{"scopeSpans":[{"spans":[{${text}}]}]}]}`

test('identifiers are hexadecimal digits, 64-bit integers texts, enumerations numbers', () => {
  const id = Buffer.from('5b8efff798038103d269b633813fc60c', 'hex')
  const body = spanRequest(0x0a, 16, ...id, 0x30, 2, 0x39, 1, 0, 0, 0, 0, 0, 0, 0x80)
  const want = span(
    '"traceId":"5b8efff798038103d269b633813fc60c","kind":2,"startTimeUnixNano":"9223372036854775809"',
  )
  assert.equal(requestToJson('traces', body), want)
})

test('fields that are unknown, or of another wire type than theirs, are left out', () => {
  // Field 1000 (varint), name as fixed32, name.
  const body = spanRequest(0xc0, 0x3e, 5, 0x2d, 1, 2, 3, 4, 0x2a, 1, 0x61)
  assert.equal(requestToJson('traces', body), span('"name":"a"'))
  const json = {
    resourceSpans: [{ scopeSpans: [{ spans: [{ name: 'a', nom: 1, start_time: null }] }], x: [] }],
  }
  assert.deepEqual(jsonToRequest('traces', json), Uint8Array.from(spanRequest(0x2a, 1, 0x61)))
})

test('of a field that may come once, and of a oneof, the last one counts', () => {
  assert.equal(requestToJson('traces', spanRequest(0x2a, 1, 0x61, 0x2a, 1, 0x62)), span('"name":"b"'))
  // An attribute whose value is a text, then true.
  const body = spanRequest(0x4a, 7, 0x12, 5, 0x0a, 1, 0x61, 0x10, 1)
  assert.equal(requestToJson('traces', body), span('"attributes":[{"value":{"boolValue":true}}]'))
})

test('numbers that repeat may be packed or not', () => {
  const unpacked = requestToJson('profiles', Buffer.from([0x12, 8, 0x3a, 6, 0x08, 1, 0x08, 2, 0x08, 3]))
  const packed = requestToJson('profiles', Buffer.from([0x12, 7, 0x3a, 5, 0x0a, 3, 1, 2, 3]))
  assert.equal(packed, '{"dictionary":{"stackTable":[{"locationIndices":[1,2,3]}]}}')
  assert.equal(unpacked, packed)
})

test('texts are JSON, whatever is in them', () => {
  const texts = ['"\\\n\u0000', 'größe 😀', '\u2028']
  for (const name of texts) {
    const body = jsonToRequest('traces', JSON.parse(span(`"name":${JSON.stringify(name)}`)))
    assert.equal(requestToJson('traces', body), span(`"name":${JSON.stringify(name)}`))
  }
  assert.equal(requestToJson('traces', spanRequest(0x2a, 2, 0xff, 0x61)), span('"name":"\ufffda"'))
})

test('texts of any length are encoded, although their buffer grows meanwhile', () => {
  const names = Array.from({ length: 40 }, (_, i) => 'ß'.repeat(2 ** (i % 15)))
  const json = { resourceSpans: [{ scopeSpans: [{ spans: names.map(name => ({ name, flags: 1 })) }] }] }
  assert.deepEqual(JSON.parse(requestToJson('traces', jsonToRequest('traces', json))), {
    resourceSpans: [{ scopeSpans: [{ spans: names.map(name => ({ flags: 1, name })) }] }],
  })
})

test('bytes that are no request are refused, wherever they end', () => {
  const type = requestType('metrics')
  fc.assert(
    fc.property(anyMessage(type), fc.nat(), fc.nat(255), (message, place, byte) => {
      const body = Buffer.from(type.encode(type.fromObject(message)).finish())
      if (body.length === 0) return
      const broken = place % 2 === 0 ? body.subarray(0, place % body.length) : body
      if (place % 2 === 1) broken[place % broken.length] = byte
      try {
        JSON.parse(requestToJson('metrics', broken))
      } catch (error) {
        assert.match(String(error), /^RangeError: cannot read OTLP request: /)
      }
    }),
    { numRuns: runs, endOnFailure: true },
  )
  const refused = (...bytes: number[]) =>
    assert.throws(() => requestToJson('logs', Buffer.from(bytes)), RangeError)
  refused(0x0a, 5)
  refused(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)
  refused(0x0b)
  refused(0x00)
  refused(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0)
})

/** A value in so many arrays. */
function nested(levels: number): unknown {
  let value: unknown = { intValue: '1' }
  for (let i = 0; i < levels; i++) value = { arrayValue: { values: [value] } }
  return { resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: value }] }] }] }
}

/** Bytes as a length-delimited field. */
function wrapped(field: number, content: Uint8Array): Uint8Array {
  const out = new Writer()
  out.bytes(fieldKey(field, WireType.bytes), content)
  return Uint8Array.from(out.written())
}

test('values may stand 32 deep in one another, and no deeper', () => {
  const json = nested(31)
  const body = jsonToRequest('logs', json)
  assert.deepEqual(JSON.parse(requestToJson('logs', body)), json)
  assert.throws(() => jsonToRequest('logs', nested(32)), /values nested at most 32 deep/)
  let deep: Uint8Array = Buffer.alloc(0)
  for (const field of [...Array(60).fill([1, 5]).flat(), 5, 2, 2, 1]) deep = wrapped(field, deep)
  assert.throws(() => requestToJson('logs', deep), /nested deeper than 32/)
})

test('JSON that is no request is refused with the place and what belongs there', () => {
  const check = (signal: 'traces' | 'metrics', json: unknown, want: string) =>
    assert.throws(() => jsonToRequest(signal, json), { name: 'RangeError', message: want })
  const inSpan = (text: string) => JSON.parse(span(text))
  const at = 'resourceSpans[0].scopeSpans[0].spans[0]'
  check('traces', [], 'the document: expected an object')
  check('traces', { resourceSpans: {} }, 'resourceSpans: expected an array')
  check('traces', { resourceSpans: [1] }, 'resourceSpans[0]: expected an object')
  check('traces', inSpan('"name":1'), `${at}.name: expected a string`)
  check(
    'traces',
    inSpan('"traceId":"W47/95gDgQPSabYzgT/GDA=="'),
    `${at}.traceId: expected 32 hexadecimal digits`,
  )
  check('traces', inSpan('"spanId":"zzzzzzzzzzzzzzzz"'), `${at}.spanId: expected 16 hexadecimal digits`)
  check(
    'traces',
    inSpan('"kind":"SPAN_KIND_SERVER"'),
    `${at}.kind: expected the number of the enumeration, not its name`,
  )
  check(
    'traces',
    inSpan('"endTimeUnixNano":"-1"'),
    `${at}.endTimeUnixNano: expected an unsigned 64-bit integer`,
  )
  check('traces', inSpan('"flags":1.5'), `${at}.flags: expected an unsigned 32-bit integer`)
  check(
    'traces',
    inSpan('"attributes":[{"key":"a","value":{"boolValue":1}}]'),
    `${at}.attributes[0].value.boolValue: expected true or false`,
  )
  check(
    'traces',
    inSpan('"attributes":[{"value":{"stringValue":"x","intValue":1}}]'),
    `${at}.attributes[0].value: expected stringValue or intValue, not both`,
  )
})

test('integers of 64 bits and doubles may be numbers or texts', () => {
  const point = (value: object) =>
    decodeRequest(
      'metrics',
      jsonToRequest('metrics', {
        resourceMetrics: [{ scopeMetrics: [{ metrics: [{ gauge: { dataPoints: [value] } }] }] }],
      }),
    )
  assert.deepEqual(point({ asInt: '-7', timeUnixNano: '1' }), point({ asInt: -7, timeUnixNano: 1 }))
  assert.deepEqual(point({ asDouble: '1.5' }), point({ asDouble: 1.5 }))
  assert.throws(() => point({ asDouble: '' }), /expected a number/)
  assert.throws(() => point({ asInt: '9223372036854775808' }), /expected a 64-bit integer/)
})

test('two megabytes of the smallest messages take seconds, not minutes', () => {
  const one = spanRequest(0x4a, 5, 0x0a, 1, 0x61, 0x12, 0)
  const many = Buffer.concat(Array.from({ length: 2_000_000 / one.length }, () => one))
  const empty = Buffer.alloc(2_000_000, Buffer.from([0x0a, 0]))
  const start = performance.now()
  requestToJson('traces', many)
  JSON.parse(requestToJson('traces', empty))
  assert.ok(performance.now() - start < 20_000)
})
