import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { kernelReason, reasons } from './reasons.ts'

const kallsyms = '/proc/kallsyms'
const modules = '/proc/modules'
/** Bytes per read; the kernel returns at most a page. */
const chunkBytes = 64 * 1024
/** About 120,000 functions have 3 MB of names. */
const mostSymbols = 1_000_000
const mostNamesBytes = 32 * 1024 * 1024
/** No function is larger; BPF programs mostly have a page. */
const largestFunction = 1024 * 1024
const unusedMs = 10 * 60_000
/** Minimum interval of reads: modules and BPF programs may have been loaded since. */
const refreshMs = 60_000
/** Maximum interval after fruitless reads. A read takes a third of a second. */
const mostRefreshMs = 15 * 60_000
const checkMs = 60_000

const low48 = 2 ** 48
/** End of the kernel's own code (include/asm-generic/sections.h). */
const textEndName = '_etext'

export interface KernelFunction {
  readonly name: string
  /** '' for the kernel itself; `bpf` for BPF programs. */
  readonly module: string
}

export interface KernelSymbolsOptions {
  /** Path that replaces /proc/kallsyms. */
  readonly kallsyms?: string
  readonly modules?: string
  /** Clock that replaces `performance.now`. */
  readonly nowMs?: () => number
}

/**
 * Names of kernel functions by the low 48 bits of an address (proc(5), `/proc/kallsyms`). Read on first use, dropped
 * after ten idle minutes, and read again for an address that no symbol covers: at most once per minute, and less often
 * after fruitless reads, as for short-lived BPF programs.
 */
export class KernelSymbols {
  readonly #options: KernelSymbolsOptions
  #table: KernelTable | undefined
  #readMs = Number.NEGATIVE_INFINITY
  #waitMs = refreshMs
  #usedMs = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: KernelSymbolsOptions = {}) {
    this.#options = options
  }

  /** Memory in bytes. */
  get bytes(): number {
    return this.#table?.bytes ?? 0
  }

  /** The function, or a reason in brackets. Does not throw. */
  find(address: number): KernelFunction | string {
    const nowMs = this.#nowMs()
    this.#usedMs = nowMs
    const found = this.#table?.at(address)
    if (found !== undefined) return found
    const isFirst = this.#table === undefined
    if (isFirst || nowMs - this.#readMs > this.#waitMs) {
      this.#read(nowMs)
      const again = this.#table?.at(address)
      if (!isFirst) this.#waitMs = again === undefined ? Math.min(2 * this.#waitMs, mostRefreshMs) : refreshMs
      if (again !== undefined) return again
    }
    return this.#table?.fault || reasons.kernelUnknown
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#table = undefined
  }

  #nowMs(): number {
    return this.#options.nowMs?.() ?? performance.now()
  }

  #read(nowMs: number): void {
    this.#readMs = nowMs
    this.#table = undefined
    this.#table = readTable(this.#options.kallsyms ?? kallsyms, this.#options.modules ?? modules)
    this.#timer ??= setInterval(() => {
      if (this.#nowMs() - this.#usedMs > unusedMs) this.close()
    }, checkMs).unref()
  }
}

/** Kernel symbols as read. */
class KernelTable {
  readonly bytes: number
  /** Why there are no symbols; '' if there are. */
  readonly fault: string
  readonly #starts: Float64Array
  readonly #places: Uint32Array
  readonly #names: Buffer
  readonly #textEnd: number
  readonly #moduleEnds: ReadonlyMap<string, number>

  constructor(reader: KallsymsReader, fault: string, moduleEnds: ReadonlyMap<string, number>) {
    const { starts, places } = reader.sorted()
    this.#starts = starts
    this.#places = places
    this.#names = reader.names()
    this.#textEnd = reader.textEnd
    this.#moduleEnds = moduleEnds
    this.fault = fault
    this.bytes = starts.byteLength + places.byteLength + this.#names.length
  }

  at(address: number): KernelFunction | undefined {
    let low = 0
    let high = this.#starts.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#starts[middle] as number) <= address) low = middle + 1
      else high = middle
    }
    const start = this.#starts[low - 1]
    if (start === undefined || address - start > largestFunction) return undefined
    const place = this.#places[low - 1] as number
    const end = this.#names.indexOf(10, place)
    const [name = '', module = ''] = this.#names.toString('latin1', place, end).split('\t')
    return this.#covers(module, start, address) ? { name, module } : undefined
  }

  /** The last function of the kernel or a module ends with it. */
  #covers(module: string, start: number, address: number): boolean {
    if (module !== '') return address < (this.#moduleEnds.get(module) ?? Number.POSITIVE_INFINITY)
    return start >= this.#textEnd || address < this.#textEnd
  }
}

function readTable(path: string, modulesPath: string): KernelTable {
  const reader = new KallsymsReader()
  let fault = ''
  try {
    const fd = openSync(path, 'r')
    try {
      reader.read(fd)
    } finally {
      closeSync(fd)
    }
    if (reader.count === 0) fault = reader.hidden ? reasons.kernelHidden : kernelReason('no symbols')
  } catch (error) {
    fault = kernelReason(`cannot read ${path}: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`)
  }
  return new KernelTable(reader, fault, moduleEnds(modulesPath))
}

/** End of each module's code and data: `name size users dependencies state address`. */
function moduleEnds(path: string): Map<string, number> {
  const ends = new Map<string, number>()
  let text = ''
  try {
    text = readFileSync(path, 'latin1')
  } catch {
    // Kernels without modules lack this file.
  }
  for (const line of text.split('\n')) {
    const fields = line.split(' ')
    const start = Number.parseInt((fields[5] ?? '').slice(-12), 16)
    if (start > 0) ends.set(fields[0] as string, start + Number(fields[1]))
  }
  return ends
}

/** Collects the functions in kallsyms lines: `address type name`, and `[module]` after a tab. */
class KallsymsReader {
  count = 0
  /** All addresses were 0. */
  hidden = false
  /** End of the kernel's own code. */
  textEnd = 0
  #starts = new Float64Array(1024)
  #places = new Uint32Array(1024)
  #isGlobal = new Uint8Array(1024)
  #text = Buffer.allocUnsafe(chunkBytes)
  #textBytes = 0

  read(fd: number): void {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    let rest = 0
    for (;;) {
      const read = readSync(fd, chunk, rest, chunk.length - rest, null)
      if (read === 0) break
      const end = rest + read
      const used = this.#take(chunk.subarray(0, end))
      chunk.copyWithin(0, used, end)
      // A line longer than the chunk is invalid.
      rest = end - used === chunk.length ? 0 : end - used
    }
  }

  names(): Buffer {
    return Buffer.from(this.#text.subarray(0, this.#textBytes))
  }

  /** By address; exported functions first among equal ones. */
  sorted(): { starts: Float64Array; places: Uint32Array } {
    const order = new Uint32Array(this.count)
    for (let i = 0; i < this.count; i++) order[i] = i
    const starts = this.#starts
    const isGlobal = this.#isGlobal
    order.sort(
      (a, b) =>
        (starts[a] as number) - (starts[b] as number) ||
        (isGlobal[b] as number) - (isGlobal[a] as number) ||
        a - b,
    )
    let kept = 0
    for (let i = 0; i < order.length; i++)
      if (i === 0 || starts[order[i] as number] !== starts[order[i - 1] as number])
        order[kept++] = order[i] as number
    const picked = order.subarray(0, kept)
    return {
      starts: Float64Array.from(picked, index => starts[index] as number),
      places: Uint32Array.from(picked, index => this.#places[index] as number),
    }
  }

  /** Returns the size of the whole lines. */
  #take(bytes: Buffer): number {
    let at = 0
    for (;;) {
      const end = bytes.indexOf(10, at)
      if (end < 0) return at
      this.#takeLine(bytes, at, end)
      at = end + 1
    }
  }

  #takeLine(bytes: Buffer, from: number, to: number): void {
    let at = from
    let address = 0
    // Only the low 48 bits are kept: 12 digits.
    for (; bytes[at] !== 0x20 && at < to; at++)
      address = ((address * 16) % low48) + digit(bytes[at] as number)
    const type = bytes[at + 1] as number
    const name = at + 3
    if (name >= to || bytes[at + 2] !== 0x20) return
    if (address === 0) this.hidden ||= isText(type)
    else if (to - name === textEndName.length && bytes.toString('latin1', name, to) === textEndName)
      this.textEnd = address
    else if (isText(type)) this.#add(address, bytes, name, to, type < 0x61)
  }

  #add(address: number, bytes: Buffer, from: number, to: number, isGlobal: boolean): void {
    const length = to - from + 1
    if (this.count >= mostSymbols || this.#textBytes + length > mostNamesBytes) return
    if (this.count === this.#starts.length) this.#grow()
    if (this.#textBytes + length > this.#text.length)
      this.#text = Buffer.concat([this.#text, Buffer.allocUnsafe(Math.max(length, this.#text.length / 2))])
    this.#starts[this.count] = address
    this.#places[this.count] = this.#textBytes
    this.#isGlobal[this.count++] = isGlobal ? 1 : 0
    bytes.copy(this.#text, this.#textBytes, from, to)
    this.#text[this.#textBytes + length - 1] = 10
    // `name\t[module]` is kept as `name\tmodule`.
    if (bytes[to - 1] === 0x5d) this.#withoutBrackets(length)
    else this.#textBytes += length
  }

  #withoutBrackets(length: number): void {
    const line = this.#text.toString('latin1', this.#textBytes, this.#textBytes + length - 2)
    this.#textBytes += this.#text.write(`${line.replace('\t[', '\t')}\n`, this.#textBytes, 'latin1')
  }

  #grow(): void {
    const room = this.count * 2
    const starts = new Float64Array(room)
    const places = new Uint32Array(room)
    const isGlobal = new Uint8Array(room)
    starts.set(this.#starts)
    places.set(this.#places)
    isGlobal.set(this.#isGlobal)
    this.#starts = starts
    this.#places = places
    this.#isGlobal = isGlobal
  }
}

/** `t`, `T`, `w` and `W` (nm(1)). */
function isText(type: number): boolean {
  const lower = type | 0x20
  return lower === 0x74 || lower === 0x77
}

function digit(character: number): number {
  return character <= 0x39 ? character - 0x30 : (character | 0x20) - 0x57
}
