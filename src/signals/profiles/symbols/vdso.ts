import { closeSync, openSync } from 'node:fs'
import { ElfFile } from '../../../foundation/lib/elf/elf-file.ts'
import { ElfError } from '../../../foundation/lib/elf/elf-format.ts'
import { vdsoRange } from '../../../kernel/process-maps.ts'
import { FileSymbols } from './file-symbols.ts'

/** One to four pages. */
const mostBytes = 64 * 1024

/**
 * Functions of the vDSO (vdso(7)), kernel code in user space without a file. All processes of an architecture have the
 * same, so this process's own is read. Offsets are relative to the mapping. Undefined if there is none.
 */
export function vdsoSymbols(): FileSymbols | undefined {
  const range = vdsoRange()
  if (range === undefined) return undefined
  const { start, end } = range
  const size = end - start
  if (size > mostBytes) return undefined
  let fd: number | undefined
  try {
    // Stays open: names are read on demand.
    fd = openSync('/proc/self/mem', 'r')
    return FileSymbols.of(ElfFile.of(fd, size, start), '[vdso]', { demangle: false, debugDirs: [] })
  } catch (error) {
    if (fd !== undefined) closeSync(fd)
    if (error instanceof ElfError || (error as NodeJS.ErrnoException).errno !== undefined) return undefined
    throw error
  }
}
