import { lengthEncoded, lengthSize } from './packets.ts'

/** Sizes of values by type (enum_field_types); other types begin with their length. */
const sizes = new Map([
  [1, 1], // TINY
  [2, 2], // SHORT
  [3, 4], // LONG
  [4, 4], // FLOAT
  [5, 8], // DOUBLE
  [6, 0], // NULL
  [8, 8], // LONGLONG
  [9, 4], // INT24
  [13, 2], // YEAR
])

const maxAttributes = 32
const types = new Uint8Array(maxAttributes)

/**
 * Offset of the text of COM_QUERY after the query attributes (CLIENT_QUERY_ATTRIBUTES), which begin at `start`; -1 if
 * they cannot be skipped.
 */
export function textBehindAttributes(bytes: Buffer, start: number, end: number): number {
  const count = lengthEncoded(bytes, start, end)
  if (count < 0 || count > maxAttributes) return -1
  let at = start + lengthSize(bytes[start]!)
  at += lengthSize(bytes[at] ?? 0) // the number of sets is always 1
  if (count === 0) return at
  const nulls = at
  at += ((count + 7) >> 3) + 1
  for (let i = 0; i < count; i++) {
    types[i] = bytes[at] ?? 0
    at = behindText(bytes, at + 2, end)
    if (at < 0) return -1
  }
  for (let i = 0; i < count; i++) {
    if (((bytes[nulls + (i >> 3)] ?? 0) & (1 << (i & 7))) !== 0) continue
    const size = sizes.get(types[i]!)
    at = size === undefined ? behindText(bytes, at, end) : at + size
    if (at < 0 || at > end) return -1
  }
  return at
}

function behindText(bytes: Buffer, at: number, end: number): number {
  const length = lengthEncoded(bytes, at, end)
  const behind = at + lengthSize(bytes[at] ?? 0) + length
  return length < 0 || behind > end ? -1 : behind
}
