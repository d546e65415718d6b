import type { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { sectionType } from '../../../foundation/lib/elf/elf-format.ts'
import { u64 } from '../../../foundation/lib/u64.ts'

export interface FoundSymbol {
  /** Address as in the file. */
  readonly address: number
  readonly size: number
}

const symbolBytes = 24
const chunkBytes = 2730 * symbolBytes
const mostTableBytes = 128 * 1024 * 1024
const mostFound = 4096
const mostNameBytes = 256

/**
 * Defined symbols with the name prefix `prefix`, from the dynamic table, otherwise from the full one (System V ABI,
 * chapter 4). Reads in pieces. Throws `ElfError`.
 */
export function findSymbols(elf: ElfFile, prefix: string): Map<string, FoundSymbol> {
  const found = new Map<string, FoundSymbol>()
  for (const wanted of [sectionType.dynsym, sectionType.symtab]) {
    // A file has one of each (System V ABI, chapter 4). One with thousands of tables over the same bytes is hostile.
    const table = elf.sections.find(({ type }) => type === wanted)
    const strings = table && elf.sections[table.link]
    if (table === undefined || strings === undefined || strings.type === sectionType.nobits) continue
    if (strings.size > mostTableBytes || table.size > mostTableBytes) continue
    const names = namesIn(elf, strings.offset, strings.size, prefix)
    if (names.size > 0) collect(elf, table.offset, table.size, names, found)
    if (found.size > 0) break
  }
  return found
}

/** Names by offset. They may be suffixes of longer ones: linkers merge equal suffixes. */
function namesIn(elf: ElfFile, offset: number, size: number, prefix: string): Map<number, string> {
  const names = new Map<number, string>()
  const overlap = mostNameBytes
  const buffer = Buffer.allocUnsafeSlow(Math.min(size, chunkBytes + overlap))
  for (let start = 0; start < size && names.size < mostFound; start += chunkBytes) {
    const bytes = buffer.subarray(0, Math.min(buffer.length, size - start))
    elf.readInto(bytes, offset + start)
    for (let at = bytes.indexOf(prefix); at >= 0; at = bytes.indexOf(prefix, at + 1)) {
      if (at >= chunkBytes || names.size >= mostFound) break
      const length = bytes.subarray(at, at + mostNameBytes + 1).indexOf(0)
      if (length >= 0) names.set(start + at, bytes.toString('latin1', at, at + length))
    }
  }
  return names
}

function collect(
  elf: ElfFile,
  offset: number,
  size: number,
  names: ReadonlyMap<number, string>,
  found: Map<string, FoundSymbol>,
): void {
  const buffer = Buffer.allocUnsafeSlow(Math.min(size, chunkBytes))
  for (let start = 0; start < size; start += chunkBytes) {
    const bytes = buffer.subarray(0, Math.min(buffer.length, size - start))
    elf.readInto(bytes, offset + start)
    for (let at = 0; at + symbolBytes <= bytes.length; at += symbolBytes) {
      const name = names.get(bytes.readUInt32LE(at))
      const isDefined = bytes.readUInt16LE(at + 6) !== 0
      if (name !== undefined && isDefined)
        found.set(name, { address: u64(bytes, at + 8), size: u64(bytes, at + 16) })
    }
  }
}
