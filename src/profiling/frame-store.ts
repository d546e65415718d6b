import type { Frame, Mapping } from '../model/profile.ts'
import type { NamedFrame, NamedStacks } from './messages.ts'

/** Stacks that are remembered; beyond them all are told and named anew. */
const maxStacks = 16_384
const maxFrames = 65_536
/** So many times as much is kept until that can be done. */
const mostOver = 4

/** Stands for what was counted and never told. */
const lostFrame: Frame = {
  name: '[lost: the stack was not told, or not named in time]',
  file: '',
  line: 0,
  type: 'native',
}

/** What was told in one epoch. */
class Generation {
  readonly epoch: number
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

  holds(times: number): boolean {
    return this.stacks > times * maxStacks || this.frames.length > times * maxFrames
  }

  add({ mappings, frames, user, kernel }: NamedStacks): void {
    for (const mapping of mappings) this.mappings.push(mapping)
    for (const frame of frames) this.frames.push(this.frameOf(frame))
    for (const stack of user) this.user.set(stack.hash, stack.frames)
    for (const stack of kernel) this.kernel.set(stack.hash, stack.frames)
  }

  resolve(indices: Uint32Array): Frame[] {
    return Array.from(indices, index => this.frames[index] ?? lostFrame)
  }

  private frameOf({ name, systemName, file, line, type, address, mapping }: NamedFrame): Frame {
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
  private now = new Generation(0)
  private before: Generation | undefined

  get stacks(): number {
    return this.now.stacks + (this.before?.stacks ?? 0)
  }

  /** There are so many that all should be forgotten. */
  get full(): boolean {
    return this.now.holds(1)
  }

  /** There are so many that no more are to be named. */
  get overfull(): boolean {
    return this.now.holds(mostOver)
  }

  /** Those of an epoch that nobody asks for any more are left out. */
  add(stacks: NamedStacks): void {
    if (stacks.epoch === this.now.epoch) this.now.add(stacks)
    else if (stacks.epoch === this.before?.epoch) this.before.add(stacks)
  }

  /** Its frames, leaf first; one that says so where it was never told. */
  userStack(hash: number): Frame[] {
    return this.resolve('user', hash)
  }

  kernelStack(hash: number): Frame[] {
    return this.resolve('kernel', hash)
  }

  /** Whoever names them begins anew. */
  clear(epoch: number): void {
    this.before = this.now
    this.now = new Generation(epoch)
  }

  /** Nobody asks any more for what was told before the last `clear`. */
  forget(): void {
    this.before = undefined
  }

  private resolve(kind: 'user' | 'kernel', hash: number): Frame[] {
    for (const generation of [this.now, this.before]) {
      const indices = generation?.[kind].get(hash)
      if (generation !== undefined && indices !== undefined) return generation.resolve(indices)
    }
    return [lostFrame]
  }
}
