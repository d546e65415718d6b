import { fieldKey, WireType, type Writer } from '../../../foundation/lib/protobuf.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import type { Profile, Sample } from '../../../foundation/model/profile.ts'
import {
  periodTypeOf,
  sampleTypeOf,
  type ValueType,
  wholePeriod,
} from '../../../foundation/model/profile-type.ts'
import { ProfileDictionary } from './profile-dictionary.ts'
import type { Encoding } from './request.ts'

const profiles = fieldKey(2, WireType.bytes)

const sampleType = fieldKey(1, WireType.bytes)
const samples = fieldKey(2, WireType.bytes)
const time = fieldKey(3, WireType.fixed64)
const duration = fieldKey(4, WireType.varint)
const periodType = fieldKey(5, WireType.bytes)
const period = fieldKey(6, WireType.varint)

const valueType = fieldKey(1, WireType.varint)
const valueUnit = fieldKey(2, WireType.varint)

const stackIndex = fieldKey(1, WireType.varint)
const attributeIndices = fieldKey(2, WireType.bytes)
const linkIndex = fieldKey(3, WireType.varint)
const values = fieldKey(4, WireType.bytes)

/** Estimated sizes. */
const usualSample = 16
const usualProfile = 20_000

/**
 * Encoding of profiles (profiles/v1development/profiles.proto of OTLP 1.11), each sample with exactly one value. A
 * profile without samples is not sent. Every request builder needs its own encoding: it contains the request's
 * dictionary.
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
  out.open(profiles, usualProfile)
  encodeType(out, sampleType, dictionary, sampleTypeOf(profile))
  for (const sample of profile.samples) encodeSample(out, dictionary, sample)
  if (profile.startUs !== 0) out.microsAsNanos(time, profile.startUs)
  if (profile.durationUs !== 0) out.int(duration, Math.round(profile.durationUs * 1000))
  const distance = wholePeriod(profile)
  if (distance > 0) {
    encodeType(out, periodType, dictionary, periodTypeOf(profile)!)
    out.int(period, distance)
  }
  out.close()
  return 1
}

function encodeType(
  out: Writer,
  key: number,
  dictionary: ProfileDictionary,
  { type, unit }: ValueType,
): void {
  out.open(key, usualSample)
  out.int(valueType, dictionary.string(type))
  if (unit !== '') out.int(valueUnit, dictionary.string(unit))
  out.close()
}

function encodeSample(out: Writer, dictionary: ProfileDictionary, sample: Sample): void {
  out.open(samples, usualSample)
  const stack = dictionary.stack(sample.frames)
  if (stack !== 0) out.int(stackIndex, stack)
  if (sample.attributes.size > 0) encodeIndices(out, dictionary, sample.attributes)
  const link = sample.link === undefined ? 0 : dictionary.link(sample.link)
  if (link !== 0) out.int(linkIndex, link)
  out.open(values, usualSample)
  out.element(Math.round(sample.value))
  out.close()
  out.close()
}

function encodeIndices(out: Writer, dictionary: ProfileDictionary, attributes: Attributes): void {
  out.open(attributeIndices, usualSample)
  for (let i = 0; i < attributes.size; i++)
    out.element(dictionary.attribute(attributes.keys[i]!, attributes.values[i]!))
  out.close()
}
