import type { Frame, Mapping } from '../model/profile.ts'
import type { NamedFrame, NamedStacks } from './messages.ts'

/** Stacks that are remembered; beyond them all are told and named anew. */
const maxStacks = 16_384
const maxFrames = 200_000

/** Stands for what was counted and never told. */
const lostFrame: Frame = {
  name: '[lost: the stack was not told, or not named in time]',
  file: '',
  line: 0,
  type: 'native',
}

/** Stacks by the hash that the kernel side has for them, their frames shared. */
export class FrameStore {
  private mappings: Mapping[] = []
  private frames: Frame[] = []
  private readonly user = new Map<number, Uint32Array>()
  private readonly kernel = new Map<number, Uint32Array>()

  get stacks(): number {
    return this.user.size + this.kernel.size
  }

  /** There are so many that all should be forgotten. */
  get full(): boolean {
    return this.stacks > maxStacks || this.frames.length > maxFrames
  }

  add({ mappings, frames, user, kernel }: NamedStacks): void {
    for (const mapping of mappings) this.mappings.push(mapping)
    for (const frame of frames) this.frames.push(this.frameOf(frame))
    for (const stack of user) this.user.set(stack.hash, stack.frames)
    for (const stack of kernel) this.kernel.set(stack.hash, stack.frames)
  }

  /** Its frames, leaf first; one that says so where it was never told. */
  userStack(hash: number): Frame[] {
    return this.resolve(this.user.get(hash))
  }

  kernelStack(hash: number): Frame[] {
    return this.resolve(this.kernel.get(hash))
  }

  /** Whoever names them begins anew. */
  clear(): void {
    this.user.clear()
    this.kernel.clear()
    this.frames = []
    this.mappings = []
  }

  private resolve(indices: Uint32Array | undefined): Frame[] {
    if (indices === undefined) return [lostFrame]
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
