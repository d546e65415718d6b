import { fieldKey, WireType, type Writer } from '../../lib/protobuf.ts'
import type { Attributes } from '../../model/attributes.ts'
import type { Profile, Sample } from '../../model/profile.ts'
import { ProfileDictionary } from './profile-dictionary.ts'
import type { Encoding } from './request.ts'

const profiles = fieldKey(2, WireType.bytes)

const sampleType = fieldKey(1, WireType.bytes)
const samples = fieldKey(2, WireType.bytes)
const time = fieldKey(3, WireType.fixed64)
const duration = fieldKey(4, WireType.varint)

const valueType = fieldKey(1, WireType.varint)
const valueUnit = fieldKey(2, WireType.varint)

const stackIndex = fieldKey(1, WireType.varint)
const attributeIndices = fieldKey(2, WireType.bytes)
const values = fieldKey(4, WireType.bytes)

/** Guesses of sizes, which only have to be near. */
const usualSample = 16
const usualProfile = 20_000

/** Names of sample types that readers of profiles know, by kind; those of counts differ from those of amounts. */
const typeNames = {
  cpu: { count: 'samples', amount: 'cpu' },
  memory: { count: 'page_faults', amount: 'alloc_space' },
  off_cpu: { count: 'off_cpu', amount: 'off_cpu' },
} as const

/**
 * Profiles as profiles/v1development/profiles.proto of OTLP 1.11 has them, each sample with exactly one value. A profile
 * without samples is not sent. Every request builder needs an encoding of its own: it holds the request's dictionary.
 */
export function profileEncoding(): Encoding<Profile> {
  const dictionary = new ProfileDictionary()
  return {
    signal: 'profiles',
    dictionary,
    encode: (out, profile) => encodeProfile(out, dictionary, profile),
  }
}

function encodeProfile(out: Writer, dictionary: ProfileDictionary, profile: Profile): number {
  if (profile.samples.length === 0) return 0
  const { unit } = profile
  const name = typeNames[profile.kind][unit === 'count' ? 'count' : 'amount']
  out.open(profiles, usualProfile)
  out.open(sampleType, usualSample)
  out.int(valueType, dictionary.string(name))
  if (unit !== '') out.int(valueUnit, dictionary.string(unit))
  out.close()
  for (const sample of profile.samples) encodeSample(out, dictionary, sample)
  if (profile.startUs !== 0) out.microsAsNanos(time, profile.startUs)
  if (profile.durationUs !== 0) out.int(duration, Math.round(profile.durationUs * 1000))
  out.close()
  return 1
}

function encodeSample(out: Writer, dictionary: ProfileDictionary, sample: Sample): void {
  out.open(samples, usualSample)
  const stack = dictionary.stack(sample.frames)
  if (stack !== 0) out.int(stackIndex, stack)
  if (sample.attributes.size > 0) encodeIndices(out, dictionary, sample.attributes)
  out.open(values, usualSample)
  out.element(sample.value)
  out.close()
  out.close()
}

function encodeIndices(out: Writer, dictionary: ProfileDictionary, attributes: Attributes): void {
  out.open(attributeIndices, usualSample)
  for (let i = 0; i < attributes.size; i++)
    out.element(dictionary.attribute(attributes.keys[i]!, attributes.values[i]!))
  out.close()
}
