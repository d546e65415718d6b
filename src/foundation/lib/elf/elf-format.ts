// The tables of a 64-bit little-endian ELF file (System V ABI, chapters 4 and 5).

import { u64 } from '../u64.ts'

/** The fault of a file, as the end of a sentence about it. */
export class ElfError extends Error {
  override readonly name = 'ElfError'
}

export type Machine = 'x64' | 'arm64'

/** Location of a header table in the file. */
export interface HeaderTable {
  readonly offset: number
  readonly count: number
}

export interface ElfHeader {
  readonly machine: Machine
  readonly segments: HeaderTable
  readonly sections: HeaderTable
  /** Index of the section with the section names. */
  readonly namesIndex: number
}

/** A loaded part. Addresses are those in the file, before relocation. */
export interface Segment {
  readonly type: number
  readonly flags: number
  readonly offset: number
  readonly address: number
  readonly fileSize: number
  readonly memorySize: number
  readonly align: number
}

export interface SectionHeader {
  /** Offset in the section of names. */
  readonly nameOffset: number
  readonly type: number
  readonly flags: number
  readonly address: number
  readonly offset: number
  readonly size: number
  readonly link: number
  readonly info: number
  readonly align: number
  readonly entrySize: number
}

export const headerBytes = 64
export const segmentBytes = 56
export const sectionBytes = 64

export const segmentType = { load: 1, note: 4, ehFrameHeader: 0x6474e550 } as const
const segmentExecutes = 1
export const sectionType = { symtab: 2, note: 7, nobits: 8, dynsym: 11 } as const
export const sectionCompressed = 0x800

/** Note types, with their owner's name. */
export const note = { gnuBuildId: ['GNU\0', 3], goBuildId: ['Go\0\0', 4] } as const

const mostSegments = 256
/** Programs have below a hundred. Only object files with one section per function have thousands. */
const mostSections = 1024
const mostBuildIdBytes = 256

const magic = 0x464c457f
const executable = 2
const sharedObject = 3
const machines = new Map<number, Machine>([
  [62, 'x64'],
  [183, 'arm64'],
])

/** Parses the first `headerBytes` of a file. Throws `ElfError`. */
export function parseHeader(bytes: Buffer): ElfHeader {
  if (bytes.length < headerBytes) throw new ElfError('the file is cut off')
  const machine = machines.get(bytes.readUInt16LE(18))
  const type = bytes.readUInt16LE(16)
  const is64Little = bytes.readUInt32LE(0) === magic && bytes[4] === 2 && bytes[5] === 1
  if (!is64Little || machine === undefined || (type !== executable && type !== sharedObject))
    throw new ElfError('not a 64-bit ELF program or library for x86-64 or arm64')
  const table = (offsetAt: number, sizesAt: number, entryBytes: number, most: number): HeaderTable => {
    const count = bytes.readUInt16LE(sizesAt + 2)
    if (count > 0 && (bytes.readUInt16LE(sizesAt) !== entryBytes || count > most))
      throw new ElfError('invalid ELF headers')
    return { offset: count === 0 ? 0 : u64(bytes, offsetAt), count }
  }
  const segments = table(32, 54, segmentBytes, mostSegments)
  const sections = table(40, 58, sectionBytes, mostSections)
  return { machine, segments, sections, namesIndex: bytes.readUInt16LE(62) }
}

export function parseSegments(table: Buffer): Segment[] {
  const segments: Segment[] = []
  for (let at = 0; at + segmentBytes <= table.length; at += segmentBytes) {
    segments.push({
      type: table.readUInt32LE(at),
      flags: table.readUInt32LE(at + 4),
      offset: u64(table, at + 8),
      address: u64(table, at + 16),
      fileSize: u64(table, at + 32),
      memorySize: u64(table, at + 40),
      align: u64(table, at + 48),
    })
  }
  return segments
}

export function parseSections(table: Buffer): SectionHeader[] {
  const sections: SectionHeader[] = []
  for (let at = 0; at + sectionBytes <= table.length; at += sectionBytes) {
    sections.push({
      nameOffset: table.readUInt32LE(at),
      type: table.readUInt32LE(at + 4),
      flags: table.readUInt32LE(at + 8),
      address: u64(table, at + 16),
      offset: u64(table, at + 24),
      size: u64(table, at + 32),
      link: table.readUInt32LE(at + 40),
      info: table.readUInt32LE(at + 44),
      align: u64(table, at + 48),
      entrySize: u64(table, at + 56),
    })
  }
  return sections
}

/** The contents of the first note of a kind, from a section or segment of notes aligned to `align`. */
export function noteBytes(
  bytes: Buffer,
  align: number,
  [owner, type]: readonly [string, number],
): Buffer | undefined {
  const padded = (length: number) => Math.ceil(length / (align === 8 ? 8 : 4)) * (align === 8 ? 8 : 4)
  for (let at = 0; at + 12 <= bytes.length; ) {
    const nameBytes = bytes.readUInt32LE(at)
    const dataBytes = bytes.readUInt32LE(at + 4)
    const data = at + padded(12 + nameBytes)
    if (data + dataBytes > bytes.length) return undefined
    const isWanted = bytes.readUInt32LE(at + 8) === type && nameBytes === owner.length
    if (
      isWanted &&
      dataBytes <= mostBuildIdBytes &&
      bytes.toString('latin1', at + 12, at + 12 + nameBytes) === owner
    )
      return bytes.subarray(data, data + dataBytes)
    at = data + padded(dataBytes)
  }
  return undefined
}

/** True if it is loaded as executable. */
export function isCode({ type, flags }: Segment): boolean {
  return type === segmentType.load && (flags & segmentExecutes) !== 0
}

/** File offset of the byte loaded at an address; undefined if none is. */
export function offsetIn(segments: readonly Segment[], address: number): number | undefined {
  for (const segment of segments) {
    const into = address - segment.address
    if (segment.type === segmentType.load && into >= 0 && into < segment.fileSize)
      return segment.offset + into
  }
  return undefined
}
