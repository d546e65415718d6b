// A profile as pprof's protobuf: https://github.com/google/pprof/blob/main/proto/profile.proto

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { StackProfile, ValueType } from './stack-profile.ts'

/** The profile as `go tool pprof` reads it: gzip around protobuf. */
export async function encodePprof(profile: StackProfile): Promise<Buffer> {
  const pprof = await import('pprof-format') // only whoever asks for a profile needs it
  const strings = new pprof.StringTable()
  const id = (text: string) => strings.dedup(text)
  const valueType = ({ type, unit }: ValueType) => ({ type: id(type), unit: id(unit) })
  const functions = new Map<string, InstanceType<typeof pprof.Function>>()
  const locations = new Map<string, InstanceType<typeof pprof.Location>>()

  const locationOf = (name: string, file: string, line: number): number => {
    const key = `${name}\n${file}\n${line}`
    const known = locations.get(key)
    if (known) return Number(known.id)
    // No system name: one that equals the name would be taken for C++ and lose what is in brackets.
    let code = functions.get(`${name}\n${file}`)
    if (!code) {
      code = new pprof.Function({ id: functions.size + 1, name: id(name), filename: id(file) })
      functions.set(`${name}\n${file}`, code)
    }
    const made = new pprof.Location({
      id: locations.size + 1,
      mappingId: 1,
      line: [{ functionId: code.id, line }],
    })
    locations.set(key, made)
    return Number(made.id)
  }

  const sample = profile.samples.map(({ stack, values }) => ({
    locationId: stack.map(({ name, file, line }) => locationOf(name, file, line)),
    value: [...values],
  }))
  const encoded = new pprof.Profile({
    sampleType: profile.types.map(valueType),
    sample,
    mapping: [
      {
        id: 1,
        filename: id('svc'),
        hasFunctions: true,
        hasFilenames: true,
        hasLineNumbers: true,
        hasInlineFrames: true,
      },
    ],
    location: [...locations.values()],
    function: [...functions.values()],
    stringTable: strings,
    timeNanos: BigInt(Math.round(profile.startMs)) * 1_000_000n,
    durationNanos: Math.round((profile.durationMs ?? 0) * 1e6),
    periodType: valueType(profile.period),
    period: profile.period.value,
    comment: profile.comments.map(id),
    defaultSampleType: id(profile.types[profile.shown]!.type),
  }).encode()
  return promisify(gzip)(encoded, { level: 1 })
}
