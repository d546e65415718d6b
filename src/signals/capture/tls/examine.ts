// Identifies a mapped file, and whether its functions may be probed.

import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { type ElfFile, type ElfSymbol, readElfSymbols } from '../../../foundation/lib/elf-symbols.ts'
import { mayHangBehind, openPlace } from '../../../kernel/mapped-mounts.ts'
import type { ProcessInspector } from '../../../kernel/process-inspector.ts'
import type { Mapping } from '../../../kernel/process-maps.ts'
import { RemoteFileError } from '../../../kernel/remote-files.ts'
import { type LibraryName, neededOf, type Probe, probesOf } from './libraries.ts'
import { memoryFault, startFault } from './prologue.ts'

const { ENOENT, ESRCH } = constants.errno
/** The process is hidden or has ended; no fault of the file. */
const ofProcess: readonly unknown[] = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM']

/** A file with code mapped by a process that may be a TLS library. */
export interface Candidate {
  readonly procDir: string
  readonly pid: number
  /** All mappings of the file: linkers and loaders split code. */
  readonly mappings: readonly [Mapping, ...Mapping[]]
  readonly library: LibraryName
}

/** Probes for a file. */
export interface Plan {
  readonly path: string
  /** Path for this process. */
  readonly openPath: string
  readonly identity: string
  readonly buildId: string
  readonly library: LibraryName
  readonly probes: readonly (Probe & { readonly offset: number })[]
  /** Why it must not be probed. */
  readonly fault: string | undefined
  /** The fault is specific to the examined process: another one that maps the file may have none. */
  readonly isOfProcess: boolean
}

/**
 * The process ended, unmapped the file, or blocks access to its memory; another process with the file can replace it.
 */
export class UnreadableProcessError extends Error {}

/**
 * Examines a mapped file. Faults in the file's own bytes, and modified code in the memory of a process, apply to all
 * processes that map it, as the kernel would write probes into that memory too. A process that does not map the
 * functions as code, or does not allow reading them, is a fault of the process only, as any user who may read the file
 * can cause it. Returns a string, the identity, for a known file; undefined if there is nothing to probe. Throws
 * `UnreadableProcessError`, or the reason why the file cannot be read.
 */
export async function examine(
  candidate: Candidate,
  processes: ProcessInspector,
  isKnown: (identity: string) => boolean,
): Promise<Plan | string | undefined> {
  const { procDir, pid, mappings, library } = candidate
  const [{ range, path }] = mappings
  // Refers to the mapped file itself, even if moved or replaced.
  const openPath = `${procDir}/${pid}/map_files/${range}`
  let elf: ElfFile
  let place = -1
  try {
    // Reading the link takes the lock of the process's memory. The lock was just free, so this hardly waits.
    if (!(await processes.isFree(procDir, pid))) throw new UnreadableProcessError(path)
    place = openPlace(openPath)
    if (mayHangBehind(procDir, pid, place)) throw new Error('the file is on a file system that may hang')
    elf = await readElfSymbols(`/proc/self/fd/${place}`, symbolsOf(library))
  } catch (error) {
    throw ofProcess.includes((error as NodeJS.ErrnoException).code) ? new UnreadableProcessError(path) : error
  } finally {
    if (place >= 0) closeSync(place)
  }
  if (isKnown(elf.identity)) return elf.identity
  return planOf(elf, path, openPath, library, symbol => inMemory(candidate, processes, elf, symbol))
}

/** The same for a file that no process needs to map. */
export async function examinePath(
  path: string,
  library: LibraryName,
  isKnown: (identity: string) => boolean,
): Promise<Plan | string | undefined> {
  const elf = await readElfSymbols(path, symbolsOf(library))
  return isKnown(elf.identity) ? elf.identity : planOf(elf, path, path, library, async () => undefined)
}

function symbolsOf(library: LibraryName): string[] {
  return probesOf(library).map(({ symbol }) => symbol)
}

async function planOf(
  elf: ElfFile,
  path: string,
  openPath: string,
  library: LibraryName,
  memory: (symbol: ElfSymbol) => Promise<MemoryFault | undefined>,
): Promise<Plan | undefined> {
  const { functions, identity, buildId } = elf
  const lacking = neededOf(library).find(name => !functions.has(name))
  // Most programs do not contain OpenSSL.
  if (lacking !== undefined && library === 'openssl-static') return undefined
  const plan = { path, openPath, identity, buildId, library, isOfProcess: false }
  if (lacking !== undefined) return { ...plan, probes: [], fault: `function ${lacking} not found` }
  const found = probesOf(library).flatMap(probe => {
    const symbol = functions.get(probe.symbol)
    return symbol === undefined || isReplaced(probe, library, functions) ? [] : [{ probe, symbol }]
  })
  for (const { probe, symbol } of found) {
    const fault = startFault(symbol.start, elf.machine, symbol.offset)
    if (fault !== undefined) return { ...plan, probes: [], fault: `${probe.symbol}: ${fault}` }
  }
  for (const { probe, symbol } of found) {
    const found = await memory(symbol)
    if (found !== undefined)
      return { ...plan, probes: [], fault: `${probe.symbol}: ${found.fault}`, isOfProcess: found.isOfProcess }
  }
  const probes = found.map(({ probe, symbol: { offset } }) => ({ ...probe, offset }))
  return { ...plan, probes, fault: undefined }
}

function isReplaced({ symbol }: Probe, library: LibraryName, functions: ElfFile['functions']): boolean {
  return probesOf(library).some(
    ({ symbol: other, insteadOf }) => insteadOf === symbol && functions.has(other),
  )
}

/** Fault of a function in a process's memory, and whether it is specific to that process. */
interface MemoryFault {
  readonly fault: string
  readonly isOfProcess: boolean
}

async function inMemory(
  { procDir, pid, mappings }: Candidate,
  processes: ProcessInspector,
  elf: ElfFile,
  symbol: ElfSymbol,
): Promise<MemoryFault | undefined> {
  const { offset, size } = symbol
  // After a short function the next one begins, which may have a probe: a detached one remains for a moment.
  const start = size > 0 ? symbol.start.subarray(0, size) : symbol.start
  const mapping = mappings.find(
    each => offset >= each.offset && offset + start.length <= each.offset + each.size,
  )
  if (mapping === undefined) return { fault: 'the process does not map this part as code', isOfProcess: true }
  const address = mapping.start + offset - mapping.offset
  try {
    const memory = await processes.memory(procDir, pid, address, start.length)
    // Code that is not in the process's memory is unmodified.
    const fault = memory && memoryFault(start, memory, elf.machine)
    return fault === undefined ? undefined : { fault, isOfProcess: false }
  } catch (error) {
    const isOfProcess = error instanceof RemoteFileError && error.errno !== 0
    if (!isOfProcess || error.errno === ENOENT || error.errno === ESRCH)
      throw new UnreadableProcessError(mapping.path)
    const fault = `cannot read the memory of a process that maps the file (${error.message})`
    return { fault, isOfProcess: true }
  }
}
