import type { Frame, Mapping } from '../../foundation/model/profile.ts'
import type { NamedFrame, NamedStack, NamedStacks } from './messages.ts'

/** Stacks that are remembered, and bytes of them and their frames; beyond them all are told and named anew. */
const maxStacks = 16_384
const maxBytes = 12 * 1024 * 1024
/** So many times as much is kept until that can be done. */
const mostOver = 2
/** Of a stack beside its frames, of a frame beside its names, of a mapping: objects and their places in tables. */
const stackBytes = 256
const frameBytes = 192
const mappingBytes = 512

/** Stands for what was counted and never told. */
const lostFrame: Frame = {
  name: '[lost: stack not reported, or not named in time]',
  file: '',
  line: 0,
  type: 'native',
}

/** What was told in one epoch. */
class Generation {
  readonly epoch: number
  bytes = 0
  readonly mappings: Mapping[] = []
  readonly frames: Frame[] = []
  readonly user = new Map<number, Uint32Array>()
  readonly kernel = new Map<number, Uint32Array>()

  constructor(epoch: number) {
    this.epoch = epoch
  }

  get stacks(): number {
    return this.user.size + this.kernel.size
  }

  hasRoom(times: number): boolean {
    return this.stacks > times * maxStacks || this.bytes > times * maxBytes
  }

  add({ mappings, frames, user, kernel }: NamedStacks): void {
    this.bytes += mappingBytes * mappings.length
    for (const mapping of mappings) this.mappings.push(mapping)
    for (const frame of frames) {
      this.bytes += frameBytes + frame.name.length + frame.systemName.length + frame.file.length
      this.frames.push(this.#frameOf(frame))
    }
    for (const stack of user) this.#put(this.user, stack)
    for (const stack of kernel) this.#put(this.kernel, stack)
  }

  resolve(indices: Uint32Array): Frame[] {
    return Array.from(indices, index => this.frames[index] ?? lostFrame)
  }

  #put(stacks: Map<number, Uint32Array>, { hash, frames }: NamedStack): void {
    if (!stacks.has(hash)) this.bytes += stackBytes + frames.byteLength
    stacks.set(hash, frames)
  }

  #frameOf({ name, systemName, file, line, type, address, mapping }: NamedFrame): Frame {
    const known = this.mappings[mapping]
    return {
      name,
      file,
      line,
      type,
      ...(systemName === '' ? {} : { systemName }),
      ...(known === undefined || address < 0 ? {} : { mapping: known, address }),
    }
  }
}

/**
 * Stacks by the hash that the kernel side has for them, their frames shared. What was told before the last `clear` is
 * kept beside until `forget`: it may have been counted and not been made a profile of.
 */
export class FrameStore {
  #now = new Generation(0)
  #before: Generation | undefined
  /** Memory is short: as if there were too much. */
  #isShort = false

  get stacks(): number {
    return this.#now.stacks + (this.#before?.stacks ?? 0)
  }

  get bytes(): number {
    return this.#now.bytes + (this.#before?.bytes ?? 0)
  }

  /** There are so many that all should be forgotten. */
  get full(): boolean {
    return this.#isShort || this.#now.hasRoom(1)
  }

  /** There are so many that no more are to be named. */
  get overfull(): boolean {
    return this.#now.hasRoom(mostOver)
  }

  /** Those of an epoch that nobody asks for any more are left out. */
  add(stacks: NamedStacks): void {
    if (stacks.epoch === this.#now.epoch) this.#now.add(stacks)
    else if (stacks.epoch === this.#before?.epoch) this.#before.add(stacks)
  }

  /** Whether it has names since the last `clear`. */
  hasUser(hash: number): boolean {
    return this.#now.user.has(hash)
  }

  hasKernel(hash: number): boolean {
    return this.#now.kernel.has(hash)
  }

  /** Its frames, leaf first; one that says so where it was never told. */
  userStack(hash: number): Frame[] {
    return this.#resolve('user', hash)
  }

  kernelStack(hash: number): Frame[] {
    return this.#resolve('kernel', hash)
  }

  /** Whoever names them begins anew. */
  clear(epoch: number): void {
    this.#before = this.#now
    this.#now = new Generation(epoch)
    this.#isShort = false
  }

  /**
   * Memory is short: what was told before the last `clear` goes, and all is told anew as soon as that can be done. Bytes
   * that are free at once.
   */
  shed(bytes: number): number {
    const freed = this.#before?.bytes ?? 0
    this.forget()
    if (freed < bytes) this.#isShort = true
    return freed
  }

  /** Nobody asks any more for what was told before the last `clear`. */
  forget(): void {
    this.#before = undefined
  }

  #resolve(kind: 'user' | 'kernel', hash: number): Frame[] {
    for (const generation of [this.#now, this.#before]) {
      const indices = generation?.[kind].get(hash)
      if (generation !== undefined && indices !== undefined) return generation.resolve(indices)
    }
    return [lostFrame]
  }
}
