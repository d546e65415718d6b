// Encodes profiles as pprof protobuf: https://github.com/google/pprof/blob/main/proto/profile.proto

import { setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { fieldKey, WireType, Writer } from './protobuf.ts'

/** The type and unit of a sample's value, or of a period. */
export interface PprofType {
  readonly type: string
  readonly unit: string
}

/** A file with code: addresses of its executable segment, and that segment's file offset. */
export interface PprofMapping {
  readonly path: string
  readonly buildId: string
  /** Used if the build id is empty. */
  readonly hash?: string
  readonly start: number
  readonly limit: number
  readonly offset: number
}

/** If it has no symbol, `name` is the reason in square brackets. */
export interface PprofFrame {
  readonly name: string
  /** The linker's name of the function, if it differs from `name`. */
  readonly systemName?: string
  readonly file: string
  /** From 1; 0: unknown. */
  readonly line: number
  readonly mapping?: PprofMapping
  /** In the address space of `mapping`. */
  readonly address?: number
}

export type PprofLabel = readonly [key: string, value: string | number]

export interface PprofSample {
  /** Innermost first. */
  readonly frames: readonly PprofFrame[]
  /** In the order of the profile's types. */
  readonly values: readonly number[]
  readonly labels?: readonly PprofLabel[]
}

export interface PprofProfile {
  readonly types: readonly PprofType[]
  /** Index into `types` of the type that is shown by default. */
  readonly shown: number
  readonly samples: Iterable<PprofSample>
  /** Mapping of frames without one. */
  readonly program?: PprofMapping
  /** Microseconds since the Unix epoch. */
  readonly startUs: number
  /** 0 for a snapshot. */
  readonly durationUs: number
  readonly period?: PprofType & { readonly value: number }
  /** Sentences for readers of the profile. */
  readonly comments: readonly string[]
}

const sampleTypeField = fieldKey(1, WireType.bytes)
const sampleField = fieldKey(2, WireType.bytes)
const mappingField = fieldKey(3, WireType.bytes)
const locationField = fieldKey(4, WireType.bytes)
const functionField = fieldKey(5, WireType.bytes)
const stringField = fieldKey(6, WireType.bytes)
const timeField = fieldKey(9, WireType.varint)
const durationField = fieldKey(10, WireType.varint)
const periodTypeField = fieldKey(11, WireType.bytes)
const periodField = fieldKey(12, WireType.varint)
const commentField = fieldKey(13, WireType.varint)
const shownField = fieldKey(14, WireType.varint)

const sampleLocations = fieldKey(1, WireType.bytes)
const sampleValues = fieldKey(2, WireType.bytes)
const sampleLabels = fieldKey(3, WireType.bytes)
const typeName = fieldKey(1, WireType.varint)
const typeUnit = fieldKey(2, WireType.varint)
const labelKey = fieldKey(1, WireType.varint)
const labelText = fieldKey(2, WireType.varint)
const labelNumber = fieldKey(3, WireType.varint)
const mappingId = fieldKey(1, WireType.varint)
const mappingStart = fieldKey(2, WireType.varint)
const mappingLimit = fieldKey(3, WireType.varint)
const mappingOffset = fieldKey(4, WireType.varint)
const mappingFile = fieldKey(5, WireType.varint)
const mappingBuildId = fieldKey(6, WireType.varint)
const mappingHasFunctions = fieldKey(7, WireType.varint)
const mappingHasFiles = fieldKey(8, WireType.varint)
const mappingHasLines = fieldKey(9, WireType.varint)
const locationId = fieldKey(1, WireType.varint)
const locationMapping = fieldKey(2, WireType.varint)
const locationAddress = fieldKey(3, WireType.varint)
const locationLines = fieldKey(4, WireType.bytes)
const lineFunction = fieldKey(1, WireType.varint)
const lineNumber = fieldKey(2, WireType.varint)
const functionId = fieldKey(1, WireType.varint)
const functionName = fieldKey(2, WireType.varint)
const functionSystemName = fieldKey(3, WireType.varint)
const functionFile = fieldKey(4, WireType.varint)

/** This many frames take well below a millisecond; then other work may run. */
const framesPerTurn = 4096

const gzipped = promisify(gzip)

/** Encodes the profile for `go tool pprof`: gzipped protobuf. Yields to other work in between. */
export async function encodePprof(profile: PprofProfile): Promise<Buffer> {
  const encoder = new Encoder(profile.program)
  let frames = 0
  for (const sample of profile.samples) {
    encoder.sample(sample)
    frames += sample.frames.length + 1
    if (frames < framesPerTurn) continue
    frames = 0
    await turn()
  }
  return gzipped(encoder.finish(profile), { level: 1 })
}

/** A mapping, and whether its code has symbols: if not, a reader looks for symbols itself. */
interface MappingEntry {
  readonly id: number
  readonly mapping: PprofMapping
  names: boolean
  files: boolean
  lines: boolean
}

/** Ids of mappings, locations and functions start at 1; string 0 is the empty one. */
class Encoder {
  readonly #program: PprofMapping | undefined
  readonly #samples = new Writer(16_384)
  readonly #locations = new Writer(16_384)
  readonly #functions = new Writer()
  readonly #texts = new Writer(16_384)
  readonly #textIds = new Map<string, number>([['', 0]])
  readonly #functionIds = new Map<string, number>()
  readonly #locationIds = new Map<string, number>()
  readonly #mappings = new Map<string, MappingEntry>()
  /** Frames and mappings are usually the same objects, so identity is checked first. */
  readonly #seenFrames = new Map<PprofFrame, number>()
  readonly #seenMappings = new Map<PprofMapping, MappingEntry>()

  constructor(program: PprofMapping | undefined) {
    this.#program = program
    this.#texts.string(stringField, '')
  }

  sample({ frames, values, labels = [] }: PprofSample): void {
    const out = this.#samples
    out.open(sampleField, 2 * frames.length + 16)
    out.open(sampleLocations, 2 * frames.length)
    for (let i = 0; i < frames.length; i++) out.element(this.#location(frames[i]!))
    out.close()
    out.open(sampleValues, 8)
    for (let i = 0; i < values.length; i++) out.element(Math.round(values[i]!))
    out.close()
    for (let i = 0; i < labels.length; i++) this.#label(labels[i]!)
    out.close()
  }

  finish({ types, shown, startUs, durationUs, period, comments }: PprofProfile): Buffer {
    const head = new Writer(1024)
    for (const type of types) this.#type(head, sampleTypeField, type)
    for (const entry of this.#mappings.values()) this.#mappingEntry(head, entry)
    head.raw(exactVarint(timeField, BigInt(Math.round(startUs)) * 1000n))
    head.int(durationField, Math.round(durationUs * 1000))
    if (period !== undefined) {
      this.#type(head, periodTypeField, period)
      head.int(periodField, Math.round(period.value))
    }
    for (const comment of comments) head.int(commentField, this.#text(comment))
    head.int(shownField, this.#text(types[shown]?.type ?? ''))
    const parts = [head, this.#samples, this.#locations, this.#functions, this.#texts]
    return Buffer.concat(parts.map(part => part.written()))
  }

  #text(text: string): number {
    const known = this.#textIds.get(text)
    if (known !== undefined) return known
    const id = this.#textIds.size
    this.#textIds.set(text, id)
    this.#texts.string(stringField, text)
    return id
  }

  #type(out: Writer, key: number, { type, unit }: PprofType): void {
    out.open(key, 8)
    out.int(typeName, this.#text(type))
    out.int(typeUnit, this.#text(unit))
    out.close()
  }

  /** A text or a whole number; readers treat a label with neither as missing. */
  #label([key, value]: PprofLabel): void {
    const out = this.#samples
    out.open(sampleLabels, 8)
    out.int(labelKey, this.#text(key))
    if (Number.isSafeInteger(value)) out.int(labelNumber, value as number)
    else out.int(labelText, this.#text(String(value)))
    out.close()
  }

  #location(frame: PprofFrame): number {
    const seen = this.#seenFrames.get(frame)
    if (seen !== undefined) return seen
    const id = this.#locationEntry(frame)
    this.#seenFrames.set(frame, id)
    return id
  }

  #locationEntry(frame: PprofFrame): number {
    const { name, file, line, address = 0, mapping = this.#program } = frame
    const code = this.#function(frame)
    const entry = mapping && this.#mapping(mapping)
    if (entry !== undefined) {
      entry.names ||= name !== '' && !name.startsWith('[')
      entry.files ||= file !== ''
      entry.lines ||= line > 0
    }
    const place = entry?.id ?? 0

    const identity = `${code} ${line} ${place} ${address}`
    const known = this.#locationIds.get(identity)
    if (known !== undefined) return known
    const id = this.#locationIds.size + 1
    this.#locationIds.set(identity, id)
    const out = this.#locations
    out.open(locationField, 24)
    out.int(locationId, id)
    if (place !== 0) out.int(locationMapping, place)
    if (address > 0) out.int(locationAddress, address)
    out.open(locationLines, 8)
    out.int(lineFunction, code)
    if (line > 0) out.int(lineNumber, line)
    out.close()
    out.close()
    return id
  }

  #function({ name, systemName = '', file }: PprofFrame): number {
    const names = [this.#text(name), this.#text(systemName), this.#text(file)] as const
    const identity = names.join(' ')
    const known = this.#functionIds.get(identity)
    if (known !== undefined) return known
    const id = this.#functionIds.size + 1
    this.#functionIds.set(identity, id)
    const out = this.#functions
    out.open(functionField, 16)
    out.int(functionId, id)
    out.int(functionName, names[0])
    // A system name equal to the name would be demangled as C++ and lose its brackets.
    if (systemName !== name) out.int(functionSystemName, names[1])
    out.int(functionFile, names[2])
    out.close()
    return id
  }

  #mapping(mapping: PprofMapping): MappingEntry {
    const seen = this.#seenMappings.get(mapping)
    if (seen !== undefined) return seen
    const { path, buildId, hash = '', start, limit, offset } = mapping
    const identity = `${start} ${limit} ${offset} ${buildId} ${hash} ${path}`
    let entry = this.#mappings.get(identity)
    if (entry === undefined) {
      entry = { id: this.#mappings.size + 1, mapping, names: false, files: false, lines: false }
      this.#mappings.set(identity, entry)
    }
    this.#seenMappings.set(mapping, entry)
    return entry
  }

  #mappingEntry(out: Writer, { id, mapping, names, files, lines }: MappingEntry): void {
    const { path, buildId, hash = '', start, limit, offset } = mapping
    out.open(mappingField, 64)
    out.int(mappingId, id)
    if (start > 0) out.int(mappingStart, start)
    if (limit > 0) out.int(mappingLimit, limit)
    if (offset > 0) out.int(mappingOffset, offset)
    out.int(mappingFile, this.#text(path))
    out.int(mappingBuildId, this.#text(buildId || hash))
    out.bool(mappingHasFunctions, names)
    out.bool(mappingHasFiles, files)
    out.bool(mappingHasLines, lines)
    out.close()
  }
}

/** A number above 2^53, such as the current time in nanoseconds. */
function exactVarint(key: number, value: bigint): Uint8Array {
  const bytes = [key]
  let rest = BigInt.asUintN(64, value)
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return Uint8Array.from(bytes)
}
