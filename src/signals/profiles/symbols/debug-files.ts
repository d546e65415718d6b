import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { sectionType } from '../../../foundation/lib/elf/elf-format.ts'

const chunkBytes = 1024 * 1024
/** The checksum of a file of this size takes a second. Larger files need a matching build id. */
const mostSummed = 512 * 1024 * 1024

/** An open file with the symbols stripped from a program. */
export interface DebugFile {
  readonly elf: ElfFile
  readonly fd: number
}

/**
 * Finds the debug file of a program as GDB does (GDB manual, "Separate Debug Files"): by build id below each directory,
 * then by the name in the program. It must have the same build id, or the checksum in the program. The caller closes
 * it.
 */
export function findDebugFile(
  elf: ElfFile,
  path: string,
  directories: readonly string[],
): DebugFile | undefined {
  const { buildId } = elf
  if (/^[0-9a-f]{4,}$/.test(buildId)) {
    const name = `${buildId.slice(0, 2)}/${buildId.slice(2)}.debug`
    for (const directory of directories) {
      const found = openDebugFile(
        join(directory, '.build-id', name),
        opened => opened.elf.buildId === buildId,
      )
      if (found) return found
    }
  }
  return byLink(elf, path, directories)
}

function byLink(elf: ElfFile, path: string, directories: readonly string[]): DebugFile | undefined {
  const link = linkOf(elf)
  if (link === undefined || !path.startsWith('/')) return undefined
  for (const directory of directories) {
    const found = openDebugFile(join(directory, dirname(path), link.name), ({ elf: opened, fd }) =>
      elf.buildId !== '' && opened.buildId !== ''
        ? opened.buildId === elf.buildId
        : checksum(fd) === link.checksum,
    )
    if (found) return found
  }
  return undefined
}

/** `.gnu_debuglink`: a name, padded to 4 bytes, and the CRC-32 of the file. */
function linkOf(elf: ElfFile): { name: string; checksum: number } | undefined {
  const section = elf.section('.gnu_debuglink')
  if (section === undefined || section.size > 512) return undefined
  const bytes = elf.bytes(section)
  const end = bytes.indexOf(0)
  const at = (end + 4) & ~3
  const name = bytes.toString('latin1', 0, Math.max(0, end))
  if (end <= 0 || at + 4 > bytes.length || name !== basename(name) || name === '..') return undefined
  return { name, checksum: bytes.readUInt32LE(at) }
}

function openDebugFile(path: string, isIt: (file: DebugFile) => boolean): DebugFile | undefined {
  let fd: number | undefined
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const file = { elf: ElfFile.of(fd), fd }
    const hasSymbols = file.elf.sections.some(({ type }) => type === sectionType.symtab)
    if (hasSymbols && isIt(file)) return file
  } catch {
    // Missing or unreadable: try the next location.
  }
  if (fd !== undefined) closeSync(fd)
  return undefined
}

function checksum(fd: number): number | undefined {
  const { size } = fstatSync(fd)
  // Node.js 20.15 and 22.2.
  if (size > mostSummed || typeof crc32 !== 'function') return undefined
  const elf = ElfFile.of(fd)
  let sum = 0
  for (let at = 0; at < size; at += chunkBytes)
    sum = crc32(elf.read(at, Math.min(chunkBytes, size - at)), sum)
  return sum
}
