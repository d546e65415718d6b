import { readlinkSync } from 'node:fs'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { small, smallCaches, smallTables } from '../../foundation/lib/small-tables.ts'
import type { Frame, FrameType, Mapping } from '../../foundation/model/profile.ts'
import {
  frameSpace,
  type RawStack,
  type RuntimeSettings,
  type StackEnd,
  type UnknownRuntime,
} from '../../foundation/model/raw-stack.ts'
import type { DecodeOrigin } from '../../kernel/decoder.ts'
import { processAsker } from '../../kernel/process-asker.ts'
import { type Mapping as ProcessMapping, readMappings } from '../../kernel/process-maps.ts'
import { ProcessMemory } from '../../kernel/process-memory.ts'
import type { KernelStack, NamedFrame, NamedStacks, SymbolSettings, WorkerState } from './messages.ts'
import { bytesOfFrame, cutName, NameRoom } from './name-room.ts'
import { RuntimeProcesses } from './runtime-processes.ts'
import { KernelSymbols } from './symbols/kernel-symbols.ts'
import { PerfMaps } from './symbols/perf-maps.ts'
import { isReason, reasons, unreadableReason } from './symbols/reasons.ts'
import type { KnownFile, UnwindTableBuilder } from './unwind-table-builder.ts'

/** Outermost frame of an incomplete stack, by the way it ended. */
const endings: Readonly<Record<StackEnd, string>> = {
  complete: '',
  no_mapping: '[incomplete: the return address is not code]',
  unknown_file: '[incomplete: the file of this code is not read yet]',
  no_rule: '[incomplete: no rule to unwind this code]',
  read_fault: '[incomplete: the stack could not be read]',
  truncated: '[incomplete: too many frames]',
  unsupported: '[incomplete: unsupported unwind rule]',
  frame_pointer_end: '[incomplete: invalid frame pointer]',
}

/** Maximum processes with cached mappings, and the cache time. */
const mostMaps = 64
/** Approximate memory of a cached mapping. */
const mappedBytes = 250
const mapsMs = 5_000
/** Maximum file offsets with cached frames. */
const mostPlaces = 200_000
/** Maximum bytes of mangled C++ names that wait for the decoder. */
const mostMangledBytes = 256 * 1024

/** Names each frame once; the consumer stores them in the order of reports. */
export class FrameNames {
  readonly #builder: UnwindTableBuilder
  readonly room = new NameRoom()
  readonly #runtimes = new RuntimeProcesses(pid => this.room.ownerOf(pid))
  readonly #kernel = new KernelSymbols()
  readonly perfMaps = new PerfMaps('/proc', pid => this.room.ownerOf(pid))
  readonly #maps = small(
    new BoundedMap<number, ProcessMaps>(
      mostMaps,
      undefined,
      (_, { mappings }) => mappings.length * mappedBytes,
    ),
  )
  #settings: SymbolSettings
  #epoch = 0
  #met = 0
  #named = 0
  #places = 0
  #newMappings: Mapping[] = []
  #newFrames: NamedFrame[] = []
  /** New frames whose names are sent to the decoder in one batch. */
  #mangled: { readonly frame: NewFrame; readonly symbol: string; readonly origin: DecodeOrigin }[] = []
  #mangledBytes = 0
  /** Numbers of the frames reported in this epoch. */
  readonly #reported = new Map<Frame, number>()
  readonly #reportedMappings = new Map<Mapping, number>()
  /** Frames by file and offset, and frames that are only a text, such as the kernel's. */
  readonly #files = new Map<number, FileFrames>()
  readonly #texts = new Map<string, Frame>()
  /** Runtime frames that have room, until reported. */
  readonly #admitted = new Set<Frame>()

  constructor(builder: UnwindTableBuilder, settings: SymbolSettings) {
    this.#builder = builder
    this.#settings = settings
  }

  configure(settings: SymbolSettings): void {
    this.#settings = settings
  }

  /** Reads a process's runtime; returns settings for the kernel side. */
  attach(runtime: UnknownRuntime): RuntimeSettings | undefined {
    const known = this.#builder.known(runtime.file)
    if (known === undefined) return undefined
    return this.#runtimes.attach(runtime, known, reason => this.#builder.note(known.file.path, reason))
  }

  /** Names stacks; new mappings and frames are in `mappings` and `frames`. */
  name(user: readonly RawStack[], kernel: readonly KernelStack[]): NamedStacks {
    this.#newMappings = []
    this.#newFrames = []
    this.#admitted.clear()
    const number = (frame: Frame) => this.#report(frame)
    const stacks = ProcessMemory.inOneTurn(() => user.map(stack => this.#safeUserStack(stack)))
    this.#demangle()
    return {
      epoch: this.#epoch,
      user: user.map(({ hash }, i) => ({ hash, frames: Uint32Array.from(stacks[i]!, number) })),
      kernel: kernel.map(({ hash, addresses }) => ({
        hash,
        frames: Uint32Array.from(addresses, address => number(this.#kernelFrame(address))),
      })),
      mappings: this.#newMappings,
      frames: this.#newFrames,
    }
  }

  #demangle(): void {
    const asked = this.#mangled
    if (asked.length === 0) return
    this.#mangled = []
    this.#mangledBytes = 0
    const names = asked.map(({ symbol, origin }) => ({ name: symbol, origin }))
    this.#builder.decoder.demangle(names).forEach((name, i) => {
      const { frame, symbol } = asked[i]!
      if (name === symbol) return
      frame.systemName = frame.name
      frame.name = cutName(name)
    })
  }

  /** Frame numbers start again. */
  clear(epoch: number): void {
    this.#epoch = epoch
    this.#reported.clear()
    this.#reportedMappings.clear()
    this.#files.clear()
    this.#places = 0
    this.#texts.clear()
    this.room.clear()
  }

  /** Releases processes that ended. */
  closeEnded(): void {
    this.#runtimes.closeEnded()
  }

  forgetFile(id: number): void {
    this.#files.delete(id)
  }

  state(): WorkerState {
    const { perfMaps } = this
    const builder = this.#builder
    const kernel = this.#kernel
    const reported = this.#reported
    const named = this.#named
    const met = this.#met
    return {
      files: builder.size,
      withoutTable: builder.withoutTable,
      symbolBytes:
        builder.symbols.bytes + kernel.bytes + perfMaps.bytes + smallCaches.bytes + smallTables.bytes,
      frames: reported.size,
      namesRefused: this.room.refused,
      shares: {
        perf_maps: perfMaps.losses,
        symbols: builder.symbols.losses,
        runtime_processes: this.#runtimes.losses,
      },
      named,
      seen: met,
      cacheHits: builder.cacheHits,
      unread: { ...processAsker.lost },
      undecoded: { ...builder.decoder.undecoded },
      decoderFault: builder.decoder.fault,
    }
  }

  /** Errors in foreign memory or files affect one stack only, which then has no names. */
  #safeUserStack(stack: RawStack): Frame[] {
    try {
      return this.#userStack(stack)
    } catch (error) {
      this.#builder.note(`process ${stack.pid} (${stack.comm})`, errorText(error))
      return [this.#textFrame('[stack: cannot be named]', 'native')]
    }
  }

  #userStack({ pid, spaces, offsets, inner, end }: RawStack): Frame[] {
    const pointers = [...offsets].filter((_, i) => isPointer(spaces[i]!))
    this.#runtimes.expect(pid, [...pointers, ...inner.offsets])
    let frames = Array.from(spaces, (space, i) => this.#userFrame(pid, space, offsets[i]!))
    const merge = this.#runtimes.unit(pid)?.merge
    if (inner.spaces.length > 0 && merge !== undefined) {
      const own = Array.from(inner.offsets, code => this.#pointerFrame(pid, code - (code % 2)))
      const entries = Array.from(inner.offsets, code => code % 2 === 1)
      frames = merge(frames, own, entries)
    }
    if (end !== 'complete') frames.push(this.#textFrame(endings[end], 'native'))
    return frames
  }

  #userFrame(pid: number, space: number, offset: number): Frame {
    if (isPointer(space)) return this.#pointerFrame(pid, offset)
    if (space === frameSpace.address) return this.#addressFrame(pid, offset)
    const known = this.#builder.known(space)
    return known === undefined
      ? this.#textFrame(reasons.processEnded, 'native')
      : this.#fileFrame(pid, known, offset)
  }

  #pointerFrame(pid: number, pointer: number): Frame {
    const frame = this.#runtimes.name(pid, pointer)
    if (frame === undefined) return this.#textFrame(reasons.processEnded, 'native')
    if (this.#reported.has(frame) || this.#admitted.has(frame)) return frame
    const bytes = bytesOfFrame(frame)
    this.#runtimes.charge(pid, bytes)
    if (!this.room.take(pid, bytes)) return this.#leftOut()
    this.#admitted.add(frame)
    return frame
  }

  #fileFrame(pid: number, { file, elf, mapping, origin }: KnownFile, offset: number): Frame {
    let frames = this.#files.get(file.id)
    if (frames === undefined) {
      frames = { byPlace: new Map(), byStart: new Map() }
      this.#files.set(file.id, frames)
    }
    this.#builder.markUsed(file.id, pid)
    const known = frames.byPlace.get(offset)
    if (known !== undefined) return known
    const symbols = this.#builder.symbolsOf(file.id, pid, () => this.room.ownerOf(pid))
    const found = typeof symbols === 'string' ? undefined : symbols.find(offset)
    // All offsets of a known function share a frame.
    const place = found?.start ?? offset
    let frame = frames.byStart.get(place)
    if (frame === undefined) {
      const address = elf?.addressOf(place)
      const name = found?.name ?? (typeof symbols === 'string' ? symbols : symbols.reason(offset))
      const made: NewFrame = {
        name: cutName(name),
        file: '',
        line: 0,
        type: found?.type ?? 'native',
        ...(found === undefined || found.systemName === found.name
          ? {}
          : { systemName: cutName(found.systemName) }),
        ...(mapping === undefined || address === undefined ? {} : { mapping, address }),
      }
      // The demangled name is not known yet; its length is similar.
      const bytes = bytesOfFrame(made) + (found?.isMangled ? made.name.length : 0)
      frame = this.room.take(pid, bytes) ? made : this.#leftOut()
      frames.byStart.set(place, frame)
      if (found?.isMangled && frame === made) this.#ask(made, name, origin)
    }
    if (++this.#places > mostPlaces) this.#forgetPlaces()
    frames.byPlace.set(offset, frame)
    return frame
  }

  #ask(frame: NewFrame, symbol: string, origin: DecodeOrigin): void {
    this.#mangled.push({ frame, symbol, origin })
    this.#mangledBytes += symbol.length
    if (this.#mangledBytes > mostMangledBytes) this.#demangle()
  }

  #leftOut(): Frame {
    return this.#textFrame(reasons.tooManyNames, 'native')
  }

  /** Their functions are still known. */
  #forgetPlaces(): void {
    for (const { byPlace } of this.#files.values()) byPlace.clear()
    this.#places = 1
  }

  /** Code outside known files. */
  #addressFrame(pid: number, address: number): Frame {
    const name = this.#settings.perfMap ? this.perfMaps.find(pid, address) : undefined
    if (name !== undefined) return this.#generatedFrame(pid, name)
    const { mappings, ended } = this.#mapsOf(pid)
    const mapping = mappings.find(({ start, size }) => address >= start && address < start + size)
    if (mapping !== undefined) {
      const known = this.#builder.mapped(pid, mapping)
      if (known !== undefined) return this.#fileFrame(pid, known, address - mapping.start + mapping.offset)
      return this.#textFrame(unreadableReason(mapping.path, 'not read yet'), 'native')
    }
    const { justInTime, anonymousMemory, processEnded } = reasons
    if (this.#runtimes.unit(pid) !== undefined) return this.#textFrame(justInTime, 'native')
    return this.#textFrame(ended ? processEnded : anonymousMemory, 'native')
  }

  /** Frame of generated code, with the name that the runtime reported. */
  #generatedFrame(pid: number, reportedName: string): Frame {
    const name = cutName(reportedName)
    const known = this.#texts.get(`native ${name}`)
    if (known !== undefined) return known
    return this.room.take(pid, bytesOfFrame({ name, file: '' }))
      ? this.#textFrame(name, 'native')
      : this.#leftOut()
  }

  #kernelFrame(address: number): Frame {
    const found = this.#kernel.find(address)
    if (typeof found === 'string') return this.#textFrame(found, 'kernel')
    const { name, module } = found
    return this.#textFrame(module === '' ? name : `${name} [${module}]`, 'kernel')
  }

  #textFrame(name: string, type: FrameType): Frame {
    const key = `${type} ${name}`
    let frame = this.#texts.get(key)
    if (frame === undefined) {
      frame = { name, file: '', line: 0, type }
      this.#texts.set(key, frame)
    }
    return frame
  }

  #mapsOf(pid: number): ProcessMaps {
    const known = this.#maps.get(pid)
    const now = performance.now()
    if (known !== undefined && now - known.readMs < mapsMs) return known
    let mappings: readonly ProcessMapping[] = []
    try {
      mappings = readMappings('/proc', pid)
    } catch {
      // It has ended, or access is denied.
    }
    const maps = { mappings, ended: mappings.length === 0 && hasEnded(pid), readMs: now }
    this.#maps.set(pid, maps)
    return maps
  }

  #report(frame: Frame): number {
    const known = this.#reported.get(frame)
    if (known !== undefined) return known
    const { name, systemName = '', file, line, type = 'native', mapping, address = -1 } = frame
    const number = this.#reported.size
    this.#reported.set(frame, number)
    this.#newFrames.push({
      name,
      systemName,
      file,
      line,
      type,
      address,
      mapping: mapping === undefined ? -1 : this.#reportMapping(mapping),
    })
    if (type !== 'kernel') {
      this.#met++
      if (!isReason(name)) this.#named++
    }
    return number
  }

  #reportMapping(mapping: Mapping): number {
    const known = this.#reportedMappings.get(mapping)
    if (known !== undefined) return known
    const number = this.#reportedMappings.size
    this.#reportedMappings.set(mapping, number)
    this.#newMappings.push(mapping)
    return number
  }
}

/** A frame before it is reported. */
type NewFrame = { -readonly [K in keyof Frame]: Frame[K] }

interface FileFrames {
  readonly byPlace: Map<number, Frame>
  /** By the start of the function. */
  readonly byStart: Map<number, Frame>
}

interface ProcessMaps {
  readonly mappings: readonly ProcessMapping[]
  readonly ended: boolean
  readonly readMs: number
}

/** An exiting process has no executable any more. If access is denied, the state is unknown. */
function hasEnded(pid: number): boolean {
  try {
    readlinkSync(`/proc/${pid}/exe`)
    return false
  } catch (error) {
    return !/^(EACCES|EPERM)$/.test((error as NodeJS.ErrnoException).code ?? '')
  }
}

/** Whether the frame is an object of a runtime. */
function isPointer(space: number): boolean {
  return space === frameSpace.v8 || space === frameSpace.cpython
}
