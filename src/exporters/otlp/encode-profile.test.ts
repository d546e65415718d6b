import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import * as arbitrary from '../../../test/helpers/otlp-arbitrary.ts'
import { decodeRequest } from '../../../test/helpers/otlp-proto.ts'
import { Attributes } from '../../model/attributes.ts'
import type { Frame, Profile } from '../../model/profile.ts'
import { resource, type Scope, schemaUrl } from '../../model/resource.ts'
import { profileEncoding } from './encode-profile.ts'
import { RequestBuilder } from './request.ts'

interface WireProfile {
  sampleType: { typeStrindex: number; unitStrindex: number }
  samples: { stackIndex?: number; attributeIndices?: number[]; values: string[] }[]
  timeUnixNano?: string
  durationNano?: string
}

interface WireDictionary {
  mappingTable: object[]
  locationTable: { lines?: { functionIndex?: number; line?: string }[] }[]
  functionTable: { nameStrindex?: number; filenameStrindex?: number }[]
  linkTable: object[]
  stringTable: string[]
  attributeTable: { keyStrindex?: number; value?: object }[]
  stackTable: { locationIndices?: number[] }[]
}

interface WireRequest {
  resourceProfiles: { scopeProfiles: { profiles: WireProfile[]; schemaUrl: string }[]; schemaUrl: string }[]
  dictionary: WireDictionary
}

const shop = resource({ 'service.name': 'shop' })
const scope: Scope = { name: 'svc/profile', version: '1' }

function decode(builder: RequestBuilder<Profile>): WireRequest {
  return decodeRequest('profiles', builder.take()[0]!.body) as unknown as WireRequest
}

/** A sample of the wire with its references resolved. */
function resolve(dictionary: WireDictionary, sample: WireProfile['samples'][number]): unknown {
  const frame = (index: number) => {
    const { lines } = dictionary.locationTable[index]!
    const line = lines?.[0]
    const { nameStrindex = 0, filenameStrindex = 0 } = dictionary.functionTable[line?.functionIndex ?? 0]!
    return {
      name: dictionary.stringTable[nameStrindex],
      file: dictionary.stringTable[filenameStrindex],
      line: Number(line?.line ?? 0),
    }
  }
  return {
    frames: (dictionary.stackTable[sample.stackIndex ?? 0]!.locationIndices ?? []).map(frame),
    values: sample.values,
    attributes: (sample.attributeIndices ?? []).map(index => {
      const { keyStrindex = 0, value } = dictionary.attributeTable[index]!
      return [dictionary.stringTable[keyStrindex], value]
    }),
  }
}

function want(sample: Profile['samples'][number]): unknown {
  const { attributes } = sample
  return {
    frames: sample.frames,
    values: [String(sample.value)],
    attributes: attributes.keys.slice(0, attributes.size).map((key, i) => {
      const value = attributes.values[i]!
      return [key, typeof value === 'number' ? { intValue: String(value) } : { stringValue: value }]
    }),
  }
}

/** The rules of the profiles' conformance checker for the shared tables. */
function checkTables({ dictionary, resourceProfiles }: WireRequest): void {
  assert.equal(dictionary.stringTable[0], '')
  assert.deepEqual(dictionary.mappingTable, [{}])
  assert.deepEqual(dictionary.linkTable, [
    { traceId: Buffer.alloc(16).toString('base64'), spanId: Buffer.alloc(8).toString('base64') },
  ])
  for (const table of [
    dictionary.locationTable,
    dictionary.functionTable,
    dictionary.attributeTable,
    dictionary.stackTable,
  ])
    assert.deepEqual(table[0], {})

  const profiles = resourceProfiles.flatMap(from => from.scopeProfiles.flatMap(group => group.profiles))
  const samples = profiles.flatMap(profile => profile.samples)
  const check = (name: string, table: unknown[], references: (number | undefined)[]) => {
    assert.equal(
      new Set(table.map(entry => JSON.stringify(entry))).size,
      table.length,
      `${name} are distinct`,
    )
    const used = new Set(references.map(index => index ?? 0))
    used.add(0)
    assert.deepEqual(
      [...used].sort((a, b) => a - b),
      [...table.keys()],
      `${name} are used, and all that is used exists`,
    )
  }
  const lines = dictionary.locationTable.flatMap(location => location.lines ?? [])
  check(
    'stacks',
    dictionary.stackTable,
    samples.map(sample => sample.stackIndex),
  )
  check(
    'attributes',
    dictionary.attributeTable,
    samples.flatMap(sample => sample.attributeIndices ?? []),
  )
  check(
    'locations',
    dictionary.locationTable,
    dictionary.stackTable.flatMap(stack => stack.locationIndices ?? []),
  )
  check(
    'functions',
    dictionary.functionTable,
    lines.map(line => line.functionIndex),
  )
  check('strings', dictionary.stringTable, [
    ...dictionary.functionTable.flatMap(entry => [entry.nameStrindex, entry.filenameStrindex]),
    ...dictionary.attributeTable.map(entry => entry.keyStrindex),
    ...profiles.flatMap(({ sampleType }) => [sampleType.typeStrindex, sampleType.unitStrindex]),
  ])
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
      const request = decodeRequest('profiles', batch.body) as unknown as WireRequest
      checkTables(request)
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
      }
    }),
    { numRuns: 300 },
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

test('a request does not inherit the tables of the one before', () => {
  const builder = new RequestBuilder(profileEncoding())
  builder.add(shop, scope, profile('cpu', 'count'))
  builder.take()
  builder.add(shop, scope, profile('off_cpu', 'nanoseconds'))
  const request = decode(builder)
  checkTables(request)
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
