// Small ELF files, byte by byte, for tests of what reads them.

import { openSync, writeFileSync } from 'node:fs'

export interface ImageSection {
  readonly name: string
  readonly type: number
  readonly bytes: Uint8Array
  /** Number of another section, from 1. */
  readonly link?: number
}

/** Address of the file's first byte: all of it is one segment of code. */
export const imageBase = 0x400000
const headersBytes = 4096

/** Where the first section lies in the file; each next one begins at a multiple of 16. */
export function sectionOffsets(sections: readonly ImageSection[]): number[] {
  let at = headersBytes
  return sections.map(({ bytes }) => {
    const offset = at
    at += (bytes.length + 15) & ~15
    return offset
  })
}

/** A program of these sections and of `size` bytes at least. */
export function elfImage(sections: readonly ImageSection[], size = 0): Buffer {
  const names = `\0.shstrtab\0${sections.map(({ name }) => `${name}\0`).join('')}`
  const all: readonly ImageSection[] = [
    ...sections,
    { name: '.shstrtab', type: 3, bytes: Buffer.from(names, 'latin1') },
  ]
  const offsets = sectionOffsets(all)
  const table = offsets.at(-1)! + ((names.length + 15) & ~15)
  const image = Buffer.alloc(Math.max(size, table + 64 * (all.length + 1)))
  image.write('7f454c46020101', 'hex')
  const u16 = { 16: 3, 18: 62, 54: 56, 56: 1, 58: 64, 60: all.length + 1, 62: all.length }
  for (const [at, value] of Object.entries(u16)) image.writeUInt16LE(value, Number(at))
  image.writeBigUInt64LE(64n, 32)
  image.writeBigUInt64LE(BigInt(table), 40)
  image.writeUInt32LE(1, 64)
  image.writeUInt32LE(5, 68)
  image.writeBigUInt64LE(BigInt(imageBase), 80)
  image.writeBigUInt64LE(BigInt(image.length), 96)
  image.writeBigUInt64LE(BigInt(image.length), 104)
  let nameAt = 11
  all.forEach(({ name, type, bytes, link = 0 }, index) => {
    const at = table + 64 * (index + 1)
    image.set(bytes, offsets[index])
    image.writeUInt32LE(index === sections.length ? 1 : nameAt, at)
    nameAt += index === sections.length ? 0 : name.length + 1
    image.writeUInt32LE(type, at + 4)
    image.writeBigUInt64LE(BigInt(imageBase + offsets[index]!), at + 16)
    image.writeBigUInt64LE(BigInt(offsets[index]!), at + 24)
    image.writeBigUInt64LE(BigInt(bytes.length), at + 32)
    image.writeUInt32LE(link, at + 40)
    image.writeBigUInt64LE(24n, at + 56)
  })
  return image
}

/** A descriptor of a file with these bytes. */
export function openImage(path: string, image: Uint8Array): number {
  writeFileSync(path, image)
  return openSync(path, 'r')
}
