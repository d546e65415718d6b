// What a mapped file is, and whether its functions may be probed.

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
/** Where a process is hidden, or has ended: it says nothing of the file. */
const ofProcess: readonly unknown[] = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM']

/** A file that a process runs code of, and that may be a TLS library. */
export interface Candidate {
  readonly procDir: string
  readonly pid: number
  /** All of the file: linkers and loaders cut code into pieces. */
  readonly mappings: readonly [Mapping, ...Mapping[]]
  readonly library: LibraryName
}

/** What is to be probed in a file. */
export interface Plan {
  readonly path: string
  /** By which this process reaches it. */
  readonly openPath: string
  readonly identity: string
  readonly buildId: string
  readonly library: LibraryName
  readonly probes: readonly (Probe & { readonly offset: number })[]
  /** Why it must be left alone. */
  readonly fault: string | undefined
  /** The fault is that of the process that was looked at: another one that maps the file may have none. */
  readonly isOfProcess: boolean
}

/** The process ended, unmapped the file, or keeps its memory to itself: another one that maps it will do. */
export class UnreadableProcessError extends Error {}

/**
 * Looks into a mapped file. What is wrong with the file's own bytes is so for all that map it, and so is other code in the
 * memory of a process: the kernel would write probes into that as well. That this process does not map the functions as
 * code, or does not let them be read, is its affair alone, which anybody who may read the file can bring about. A string: the identity
 * of one that is known. Undefined: it has nothing to probe. Throws `UnreadableProcessError`, or why the file cannot be read.
 */
export async function examine(
  candidate: Candidate,
  processes: ProcessInspector,
  isKnown: (identity: string) => boolean,
): Promise<Plan | string | undefined> {
  const { procDir, pid, mappings, library } = candidate
  const [{ range, path }] = mappings
  // Leads to the mapped file itself, wherever it was moved and whatever took its place.
  const openPath = `${procDir}/${pid}/map_files/${range}`
  let elf: ElfFile
  let place = -1
  try {
    // The link is behind the lock of the process's memory: this waits for it, if for anybody, right after it was free.
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

/** The same of a file that nobody need map. */
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
  // Programs without OpenSSL inside are the rule.
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

/** What is wrong with a function as a process has it in memory, and whether that says nothing of others. */
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
  // Behind a short function another one begins, where a probe may be as well: one that is let go is there for a moment.
  const start = size > 0 ? symbol.start.subarray(0, size) : symbol.start
  const mapping = mappings.find(
    each => offset >= each.offset && offset + start.length <= each.offset + each.size,
  )
  if (mapping === undefined) return { fault: 'the process does not map this part as code', isOfProcess: true }
  const address = mapping.start + offset - mapping.offset
  try {
    const memory = await processes.memory(procDir, pid, address, start.length)
    // Nobody changed what the process never had in memory.
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
