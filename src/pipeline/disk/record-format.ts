// Layout of records on disk. Numbers are little-endian; every CRC is the CRC-32 of zlib.
//
// A segment is a file NNNNNNNNNNNNNNNN.seg. The sixteen digits are the lowest sequence number that it may contain, and
// the name of the next file ends its range. If a record is in two files, the one in the file whose range contains its
// number is valid. A segment begins with a header, followed by records without padding.
//
//   segment header (48 bytes)                        record header (52 bytes), then the body
//    0 magic "SVCQ"                                   0 magic "SQR1"
//    4 version u16: 1                                 4 length of the body u32, at most 64 MiB
//    6 length of this header u16                      8 sequence number u64
//    8 created u64: ns since the Unix epoch          16 items u32
//   16 first sequence number u64                     20 bytes before compression u32
//   24 items before u64                              24 order keys u32
//   32 kind u8: signal, then 7 bytes 0               28 written u48: ms since the Unix epoch
//   40 flags u32: 0                                  34 kind u8: signal
//   44 CRC of all before it u32                      35 codec u8: 0 identity, 1 gzip, 2 zstd; 128: with a reason
//                                                    36 items before u64
//                                                    44 CRC of the body u32
//                                                    48 CRC of the bytes 4 to 48 u32
//
// "Items before" is the total of all items ever appended to the log before. It gives the items of a segment without
// reading it, and the items of unreadable records from their neighbours. There are two CRCs, so that a damaged body
// hides neither the number of lost items nor the start of the next record.
//
// A body "with a reason" (dead letters) begins with the length of a text u16 and the text in UTF-8: why it was
// rejected. In later versions too, the CRC is the last field of the segment header, so that a program can distinguish a
// later version, which it leaves unchanged, from a damaged header.

import { crc32 } from 'node:zlib'
import { u64 } from '../../foundation/lib/u64.ts'
import type { BodyEncoding } from '../../foundation/model/batch.ts'

const segmentVersion = 1
export const segmentHeadBytes = 48
export const recordHeadBytes = 52
/** Maximum body length; a record with more is damaged. */
export const mostBodyBytes = 64 * 1024 * 1024
/** First four bytes of a record. */
export const recordMagic = Buffer.from('SQR1')
/** Maximum sequence number, so that sums of two stay exact; higher ones are damage. */
export const mostSeq = 2 ** 52

const segmentMagic = Buffer.from('SVCQ')
const encodings: readonly BodyEncoding[] = ['identity', 'gzip', 'zstd']
const withReason = 128
const mostReasonBytes = 1024
const mostHeadBytes = 4096

export interface SegmentHead {
  readonly createdMs: number
  readonly firstSeq: number
  readonly itemsBefore: number
}

/** Header of a record as read. */
export interface RecordHead {
  readonly bodyBytes: number
  readonly seq: number
  readonly items: number
  readonly plainBytes: number
  readonly orderKeys: number
  readonly timeMs: number
  readonly kind: number
  readonly encoding: BodyEncoding
  readonly hasReason: boolean
  readonly itemsBefore: number
  readonly bodyCrc: number
}

/** Fields of a record header. */
export interface RecordFacts {
  readonly seq: number
  readonly items: number
  readonly plainBytes: number
  readonly orderKeys: number
  readonly encoding: BodyEncoding
  readonly timeMs: number
}

export function segmentName(firstSeq: number): string {
  return `${String(firstSeq).padStart(16, '0')}.seg`
}

/** First sequence number from a file name; undefined if it is not a segment. */
export function firstSeqOf(name: string): number | undefined {
  if (!/^\d{16}\.seg$/.test(name)) return undefined
  const first = Number(name.slice(0, 16))
  return first > 0 && first <= mostSeq ? first : undefined
}

export function encodeSegmentHead(head: SegmentHead, kind: number): Buffer {
  const to = Buffer.alloc(segmentHeadBytes)
  segmentMagic.copy(to)
  to.writeUInt16LE(segmentVersion, 4)
  to.writeUInt16LE(segmentHeadBytes, 6)
  to.writeBigUInt64LE(BigInt(Math.round(head.createdMs)) * 1_000_000n, 8)
  writeU64(to, head.firstSeq, 16)
  writeU64(to, head.itemsBefore, 24)
  to[32] = kind
  to.writeUInt32LE(crc32(to.subarray(0, 44)), 44)
  return to
}

/**
 * Header of a segment from its first bytes: undefined if damaged, and 'later' if written by an svc with
 * a newer version of this format.
 */
export function decodeSegmentHead(from: Buffer): SegmentHead | 'later' | undefined {
  if (from.length < 12 || !from.subarray(0, 4).equals(segmentMagic)) return undefined
  const version = from.readUInt16LE(4)
  const length = from.readUInt16LE(6)
  if (length < 12 || length > mostHeadBytes || length > from.length) return undefined
  if (crc32(from.subarray(0, length - 4)) !== from.readUInt32LE(length - 4)) return undefined
  if (version > segmentVersion) return 'later'
  if (version !== segmentVersion || length !== segmentHeadBytes) return undefined
  return {
    createdMs: Number(from.readBigUInt64LE(8) / 1_000_000n),
    firstSeq: u64(from, 16),
    itemsBefore: u64(from, 24),
  }
}

/** Number of bytes that suffice for `decodeSegmentHead`. */
export const segmentHeadProbeBytes = mostHeadBytes

/** Writes a record header to the start of `to`. `reason` is the result of `encodeReason`, empty for none. */
export function encodeRecordHead(
  to: Buffer,
  facts: RecordFacts,
  kind: number,
  itemsBefore: number,
  reason: Uint8Array,
  body: Uint8Array,
): void {
  recordMagic.copy(to)
  to.writeUInt32LE(reason.length + body.length, 4)
  writeU64(to, facts.seq, 8)
  to.writeUInt32LE(facts.items, 16)
  to.writeUInt32LE(facts.plainBytes, 20)
  to.writeUInt32LE(facts.orderKeys >>> 0, 24)
  to.writeUIntLE(Math.round(facts.timeMs), 28, 6)
  to[34] = kind
  to[35] = encodings.indexOf(facts.encoding) + (reason.length > 0 ? withReason : 0)
  writeU64(to, itemsBefore, 36)
  to.writeUInt32LE(crc32(body, crc32(reason)), 44)
  to.writeUInt32LE(crc32(to.subarray(4, 48)), 48)
}

/** Record header at `offset`; undefined if there is none. */
export function decodeRecordHead(from: Buffer, offset: number): RecordHead | undefined {
  if (offset + recordHeadBytes > from.length) return undefined
  if (recordMagic.compare(from, offset, offset + 4) !== 0) return undefined
  const bodyBytes = from.readUInt32LE(offset + 4)
  const seq = u64(from, offset + 8)
  const codec = from[offset + 35] as number
  const encoding = encodings[codec & ~withReason]
  if (bodyBytes > mostBodyBytes || seq < 1 || seq > mostSeq || !encoding) return undefined
  if (crc32(from.subarray(offset + 4, offset + 48)) !== from.readUInt32LE(offset + 48)) return undefined
  return {
    bodyBytes,
    seq,
    items: from.readUInt32LE(offset + 16),
    plainBytes: from.readUInt32LE(offset + 20),
    orderKeys: from.readUInt32LE(offset + 24),
    timeMs: from.readUIntLE(offset + 28, 6),
    kind: from[offset + 34] as number,
    encoding,
    hasReason: codec >= withReason,
    itemsBefore: u64(from, offset + 36),
    bodyCrc: from.readUInt32LE(offset + 44),
  }
}

/** Encoded reason, written before a body; cut at 1 KiB. */
export function encodeReason(why: string): Buffer {
  const text = Buffer.from(why).subarray(0, mostReasonBytes)
  const length = Buffer.alloc(2)
  length.writeUInt16LE(text.length)
  return Buffer.concat([length, text])
}

/** Splits a stored body into reason and body. */
export function splitReason(stored: Buffer): { why: string; body: Buffer } {
  const length = stored.length < 2 ? 0 : stored.readUInt16LE(0)
  return { why: stored.toString('utf8', 2, 2 + length), body: stored.subarray(2 + length) }
}

function writeU64(to: Buffer, value: number, offset: number): void {
  to.writeUInt32LE(value >>> 0, offset)
  to.writeUInt32LE(Math.floor(value / 2 ** 32), offset + 4)
}
