import type { Frame, Mapping } from '../../foundation/model/profile.ts'
import type { NamedFrame, NamedStack, NamedStacks } from './messages.ts'

/** Maximum stacks, and bytes with their frames; above, all are reported and named again. */
const maxStacks = 16_384
const maxBytes = 12 * 1024 * 1024
/** Factor up to which more is kept until then. */
const mostOver = 2
/** Overhead of a stack, a frame and a mapping: objects and their places in tables. */
const stackBytes = 256
const frameBytes = 192
const mappingBytes = 512

/** Replaces stacks that were counted but never reported. */
const lostFrame: Frame = {
  name: '[lost: stack not reported, or not named in time]',
  file: '',
  line: 0,
  type: 'native',
}

/** Stacks of one epoch. */
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
 * Stacks by the kernel side's hash, with shared frames. Stacks from before the last `clear` are kept until `forget`:
 * their counts may not be in a profile yet.
 */
export class FrameStore {
  #now = new Generation(0)
  #before: Generation | undefined
  /** Memory is short: behaves as if full. */
  #isShort = false

  get stacks(): number {
    return this.#now.stacks + (this.#before?.stacks ?? 0)
  }

  get bytes(): number {
    return this.#now.bytes + (this.#before?.bytes ?? 0)
  }

  /** So full that all stacks should be forgotten. */
  get full(): boolean {
    return this.#isShort || this.#now.hasRoom(1)
  }

  /** So full that no more stacks should be named. */
  get overfull(): boolean {
    return this.#now.hasRoom(mostOver)
  }

  /** Ignores stacks of outdated epochs. */
  add(stacks: NamedStacks): void {
    if (stacks.epoch === this.#now.epoch) this.#now.add(stacks)
    else if (stacks.epoch === this.#before?.epoch) this.#before.add(stacks)
  }

  /** Its frames, leaf first; `[lost: …]` alone if it was never reported. */
  userStack(hash: number): Frame[] {
    return this.#resolve('user', hash)
  }

  kernelStack(hash: number): Frame[] {
    return this.#resolve('kernel', hash)
  }

  /** Starts a new epoch of names. */
  clear(epoch: number): void {
    this.#before = this.#now
    this.#now = new Generation(epoch)
    this.#isShort = false
  }

  /**
   * Drops stacks from before the last `clear`, and requests a renewal of all others. Returns the bytes freed at once.
   */
  shed(bytes: number): number {
    const freed = this.#before?.bytes ?? 0
    this.forget()
    if (freed < bytes) this.#isShort = true
    return freed
  }

  /** Drops stacks from before the last `clear`. */
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
