import type { FileIdentity, RuntimeSettings, StackCount } from '../../foundation/model/raw-stack.ts'
import type { UnwindMemory } from './unwind-arena.ts'

/** What is sampled. */
export interface Sampling {
  /** Samples per second and CPU, about: a prime near it. */
  readonly sampleRate: number
  readonly cpu: boolean
  readonly memory: boolean
  readonly offCpu: boolean
  readonly includeKernel: boolean
}

/** The kernel side, as src/signals/capture/stack-sampler.ts has it. */
export interface Sampler {
  readonly tables: UnwindMemory
  /** From now on code of this file is unwound by the table with this id. */
  publish(file: FileIdentity, id: number): void
  unpublish(file: FileIdentity): void
  setRuntime(pid: number, settings: RuntimeSettings): void
  /** All processes with a runtime are told of again. */
  forgetRuntimes(): void
  /** All stacks are told again when they are next met. */
  forgetStacks(): void
  /** Tells of stacks and files that wait. */
  drain(): void
  /** Hands over the counts since the last call. */
  collect(visit: (count: StackCount) => void): void
  apply(sampling: Sampling): void
  close(): void
}
