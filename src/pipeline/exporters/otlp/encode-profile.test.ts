import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import * as arbitrary from '../../../../test/helpers/otlp-arbitrary.ts'
import { decodeRequest } from '../../../../test/helpers/otlp-proto.ts'
import { assertConformant } from '../../../../test/helpers/profcheck.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type { Frame, Mapping, Profile, Sample } from '../../../foundation/model/profile.ts'
import { resource, type Scope, schemaUrl } from '../../../foundation/model/resource.ts'
import { profileEncoding } from './encode-profile.ts'
import { RequestBuilder } from './request.ts'

interface WireSample {
  stackIndex?: number
  attributeIndices?: number[]
  linkIndex?: number
  values: string[]
}

interface WireType {
  typeStrindex: number
  unitStrindex: number
}

interface WireProfile {
  sampleType: WireType
  samples: WireSample[]
  timeUnixNano?: string
  durationNano?: string
  periodType?: WireType
  period?: string
}

interface WireLocation {
  mappingIndex?: number
  address?: string
  lines?: { functionIndex?: number; line?: string }[]
  attributeIndices?: number[]
}

interface WireMapping {
  memoryStart?: string
  memoryLimit?: string
  fileOffset?: string
  filenameStrindex?: number
  attributeIndices?: number[]
}

interface WireDictionary {
  mappingTable: WireMapping[]
  locationTable: WireLocation[]
  functionTable: { nameStrindex?: number; systemNameStrindex?: number; filenameStrindex?: number }[]
  linkTable: { traceId: string; spanId: string }[]
  stringTable: string[]
  attributeTable: { keyStrindex?: number; value?: Record<string, unknown> }[]
  stackTable: { locationIndices?: number[] }[]
}

interface WireRequest {
  resourceProfiles: { scopeProfiles: { profiles: WireProfile[]; schemaUrl: string }[]; schemaUrl: string }[]
  dictionary: WireDictionary
}

const numRuns = soak ? 5000 : 200

const shop = resource({ 'service.name': 'shop' })
const scope: Scope = { name: 'svc/profile', version: '1' }

function decode(builder: RequestBuilder<Profile>): WireRequest {
  const { body } = builder.take()[0]!
  assertConformant(body)
  return decodeRequest('profiles', body) as unknown as WireRequest
}

/** Attributes of the wire by their keys. */
function resolveAttributes(dictionary: WireDictionary, indices: number[] = []): Record<string, unknown> {
  return Object.fromEntries(
    indices.map(index => {
      const { keyStrindex = 0, value } = dictionary.attributeTable[index]!
      return [dictionary.stringTable[keyStrindex], value]
    }),
  )
}

function resolveFrame(dictionary: WireDictionary, index: number): unknown {
  const { stringTable, functionTable, mappingTable, locationTable } = dictionary
  const { lines = [], mappingIndex = 0, address, attributeIndices } = locationTable[index]!
  const [line] = lines
  const { nameStrindex, systemNameStrindex, filenameStrindex } = functionTable[line?.functionIndex ?? 0]!
  const mapping = mappingTable[mappingIndex]!
  return {
    name: stringTable[nameStrindex ?? 0],
    systemName: stringTable[systemNameStrindex ?? 0],
    file: stringTable[filenameStrindex ?? 0],
    line: Number(line?.line ?? 0),
    address: Number(address ?? 0),
    attributes: resolveAttributes(dictionary, attributeIndices),
    mapping: mappingIndex !== 0 && [
      stringTable[mapping.filenameStrindex ?? 0],
      Number(mapping.memoryStart ?? 0),
      Number(mapping.memoryLimit ?? 0),
      Number(mapping.fileOffset ?? 0),
      resolveAttributes(dictionary, mapping.attributeIndices),
    ],
  }
}

/** A sample of the wire with its references resolved. */
function resolve(dictionary: WireDictionary, sample: WireSample): unknown {
  const { locationIndices = [] } = dictionary.stackTable[sample.stackIndex ?? 0]!
  return {
    frames: locationIndices.map(index => resolveFrame(dictionary, index)),
    values: sample.values,
    attributes: resolveAttributes(dictionary, sample.attributeIndices),
    link: sample.linkIndex ? dictionary.linkTable[sample.linkIndex] : undefined,
  }
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const wireText = (stringValue: string) => ({ stringValue })

function wireValue(value: AttributeValue): unknown {
  if (typeof value === 'number') return { intValue: String(value) }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'string') return wireText(value)
  return { arrayValue: value.length > 0 ? { values: value.map(wireText) } : {} }
}

function wantFrame({ name, file, line, systemName = '', type, mapping, address = 0 }: Frame): unknown {
  return {
    name,
    systemName,
    file,
    line,
    address,
    attributes: type ? { 'profile.frame.type': wireText(type) } : {},
    mapping: mapping !== undefined && [
      mapping.path,
      mapping.start,
      mapping.limit,
      mapping.offset,
      {
        ...(mapping.buildId !== '' && { 'process.executable.build_id.gnu': wireText(mapping.buildId) }),
        'process.executable.build_id.htlhash': wireText(mapping.hash),
      },
    ],
  }
}

function want({ frames, value, attributes, link }: Sample): unknown {
  const entries = Object.entries(attributes.toObject())
  return {
    frames: frames.map(wantFrame),
    values: [String(value)],
    attributes: Object.fromEntries(entries.map(([key, each]) => [key, wireValue(each)])),
    link: link && { traceId: base64(link.traceId), spanId: base64(link.spanId) },
  }
}

test('samples come back with their stacks and attributes from tables that follow the rules', () => {
  const builder = new RequestBuilder(profileEncoding())
  const bank = resource({ 'service.name': 'bank' })
  const entry = fc.tuple(fc.constantFrom(shop, bank), arbitrary.profile)
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 5 }), entries => {
      for (const [from, profile] of entries) builder.add(from, scope, profile)
      const bound = builder.bytes
      const batch = builder.take()[0]!
      assert.equal(batch.items, entries.length)
      assert.equal(batch.body.length <= bound, true)
      assertConformant(batch.body)
      const request = decodeRequest('profiles', batch.body) as unknown as WireRequest
      const first = entries[0]![0]
      const inOrder = [
        ...entries.filter(([from]) => from === first),
        ...entries.filter(([from]) => from !== first),
      ]
      const decoded = request.resourceProfiles.flatMap(from =>
        from.scopeProfiles.flatMap(group => group.profiles),
      )
      assert.deepEqual(
        decoded.map(profile => profile.samples.map(sample => resolve(request.dictionary, sample))),
        inOrder.map(([, profile]) => profile.samples.map(want)),
      )
      for (const [i, [, profile]] of inOrder.entries()) {
        assert.equal(decoded[i]!.timeUnixNano ?? '0', (BigInt(profile.startUs * 4) * 250n).toString())
        assert.equal(decoded[i]!.durationNano ?? '0', String(profile.durationUs * 1000))
        assert.equal(decoded[i]!.period, profile.period === undefined ? undefined : String(profile.period))
      }
    }),
    { numRuns },
  )
})

const frames: Frame[] = [
  { name: 'read', file: 'io.c', line: 7 },
  { name: 'main', file: 'main.c', line: 3 },
]

function profile(kind: Profile['kind'], unit: string): Profile {
  const samples = [{ frames, value: 5, attributes: new Attributes() }]
  return { kind, unit, startUs: 1_000_000, durationUs: 10, samples }
}

test('the type of the samples has the name that readers know', () => {
  const check = (kind: Profile['kind'], unit: string, type: string) => {
    const builder = new RequestBuilder(profileEncoding())
    builder.add(shop, scope, profile(kind, unit))
    const { dictionary, resourceProfiles } = decode(builder)
    const { sampleType } = resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!
    const { stringTable } = dictionary
    assert.deepEqual(
      [stringTable[sampleType.typeStrindex], stringTable[sampleType.unitStrindex]],
      [type, unit],
    )
  }
  check('cpu', 'count', 'samples')
  check('cpu', 'nanoseconds', 'cpu')
  check('off_cpu', 'nanoseconds', 'off_cpu')
  check('memory', 'bytes', 'alloc_space')
  check('memory', 'count', 'page_faults')
})

test('a period has the type of its kind, and there is none of what has no period', () => {
  const check = (kind: Profile['kind'], period: number | undefined, ...want: (string | undefined)[]) => {
    const builder = new RequestBuilder(profileEncoding())
    builder.add(shop, scope, { ...profile(kind, 'nanoseconds'), ...(period !== undefined && { period }) })
    const { dictionary, resourceProfiles } = decode(builder)
    const { periodType, period: wire } = resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!
    const text = (index: number | undefined) => (index ? dictionary.stringTable[index] : undefined)
    assert.deepEqual([wire, text(periodType?.typeStrindex), text(periodType?.unitStrindex)], want)
  }
  check('cpu', 10_101_010.1, '10101010', 'cpu', 'nanoseconds')
  check('memory', 524_288, '524288', 'memory', 'bytes')
  check('off_cpu', 7, undefined, undefined, undefined)
  check('cpu', undefined, undefined, undefined, undefined)
  check('cpu', 0.2, undefined, undefined, undefined)
})

const library: Mapping = { path: '/lib/x.so', buildId: 'ab', hash: 'cd', start: 1, limit: 9, offset: 0 }

test('a file that nothing identifies is no mapping, and one without a sound range has none', () => {
  const check = (over: Partial<Mapping>, want: WireMapping[]) => {
    const builder = new RequestBuilder(profileEncoding())
    const mapping = { ...library, ...over }
    const frame: Frame = { name: 'f', file: '', line: 0, mapping, address: 5 }
    const samples = [{ frames: [frame], value: 1, attributes: new Attributes() }]
    builder.add(shop, scope, { ...profile('cpu', 'count'), samples })
    const { dictionary } = decode(builder)
    assert.deepEqual(dictionary.mappingTable.slice(1), want)
    assert.equal(dictionary.locationTable[1]!.address, want.length > 0 ? '5' : undefined)
  }
  const rest = { filenameStrindex: 4, attributeIndices: [1, 2] }
  check({}, [{ memoryStart: '1', memoryLimit: '9', ...rest }])
  check({ start: 9 }, [rest])
  check({ start: 0, limit: 0, offset: -1 }, [rest])
  check({ buildId: '', hash: '' }, [])
})

test('a frame is one entry, whether it comes as one object or as several', () => {
  const builder = new RequestBuilder(profileEncoding())
  const frame: Frame = { name: 'f', file: '', line: 3, mapping: library, address: 5, type: 'native' }
  const again = { ...frame, mapping: { ...library } }
  const other = { ...frame, address: 6 }
  const samples = [[frame, again, frame], [other]].map(stack => ({
    frames: stack,
    value: 1,
    attributes: new Attributes(),
  }))
  builder.add(shop, scope, { ...profile('cpu', 'count'), samples })
  const { dictionary } = decode(builder)
  assert.deepEqual(dictionary.stackTable, [{}, { locationIndices: [1, 1, 1] }, { locationIndices: [2] }])
  assert.equal(dictionary.mappingTable.length, 2)
})

test('a link that names no span is none', () => {
  const builder = new RequestBuilder(profileEncoding())
  const trace = new Uint8Array(16).fill(1)
  const span = new Uint8Array(8).fill(2)
  const links = [
    { traceId: trace, spanId: span },
    { traceId: new Uint8Array(16), spanId: span },
    { traceId: trace, spanId: new Uint8Array(8) },
    { traceId: new Uint8Array(), spanId: span },
    { traceId: Uint8Array.from(trace), spanId: Uint8Array.from(span) },
  ]
  const samples = links.map(link => ({ frames, value: 1, attributes: new Attributes(), link }))
  builder.add(shop, scope, { ...profile('cpu', 'count'), samples })
  const { dictionary, resourceProfiles } = decode(builder)
  const wire = resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!.samples
  assert.deepEqual(
    wire.map(({ linkIndex }) => linkIndex),
    [1, undefined, undefined, undefined, 1],
  )
  assert.equal(dictionary.linkTable.length, 2)
})

test('what was taken back is in no table, and may come again', () => {
  const builder = new RequestBuilder(profileEncoding())
  const entry = fc.tuple(arbitrary.profile, arbitrary.profile)
  fc.assert(
    fc.property(entry, ([kept, taken]) => {
      builder.add(shop, scope, kept)
      builder.add(shop, scope, taken)
      builder.undo()
      builder.add(shop, scope, kept)
      builder.add(shop, scope, taken)
      builder.undo()
      assertConformant(builder.take()[0]!.body)
    }),
    { numRuns },
  )
})

test('a request does not inherit the tables of the one before', () => {
  const builder = new RequestBuilder(profileEncoding())
  builder.add(shop, scope, profile('cpu', 'count'))
  builder.take()
  builder.add(shop, scope, profile('off_cpu', 'nanoseconds'))
  const request = decode(builder)
  assert.deepEqual(request.dictionary.stringTable, [
    '',
    'off_cpu',
    'nanoseconds',
    'read',
    'io.c',
    'main',
    'main.c',
  ])
  assert.equal(request.resourceProfiles[0]!.schemaUrl, schemaUrl)
  assert.equal(request.resourceProfiles[0]!.scopeProfiles[0]!.schemaUrl, schemaUrl)
})

test('stacks that begin alike are stacks of their own', () => {
  const builder = new RequestBuilder(profileEncoding())
  const attributes = new Attributes()
  const sample = (length: number) => ({ frames: frames.slice(0, length), value: 1, attributes })
  builder.add(shop, scope, { ...profile('cpu', 'count'), samples: [2, 1, 0, 2].map(sample) })
  const { dictionary, resourceProfiles } = decode(builder)
  assert.deepEqual(dictionary.stackTable, [{}, { locationIndices: [1, 2] }, { locationIndices: [1] }])
  const { samples } = resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!
  assert.deepEqual(
    samples.map(({ stackIndex }) => stackIndex),
    [1, 2, undefined, 1],
  )
})

test('attributes of the same text and another type are different entries', () => {
  const builder = new RequestBuilder(profileEncoding())
  const samples = ([3, '3', true, 'true', ['3'], ['3', '4'], 3] as const).map(value => ({
    frames,
    value: 1,
    attributes: Attributes.of({ k: value }),
  }))
  builder.add(shop, scope, { ...profile('cpu', 'count'), samples })
  const request = decode(builder)
  const wire = request.resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!.samples
  assert.deepEqual(
    wire.map(({ attributeIndices }) => attributeIndices),
    [[1], [2], [3], [4], [5], [6], [1]],
  )
})
