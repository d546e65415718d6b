import type { FileIdentity, RuntimeSettings, StackCount } from '../../foundation/model/raw-stack.ts'
import type { UnwindMemory } from './unwind-arena.ts'

/** Selection of samples. */
export interface Sampling {
  /** Approximate samples per second and CPU: a prime near it. */
  readonly sampleRate: number
  readonly cpu: boolean
  readonly memory: boolean
  readonly offCpu: boolean
  readonly includeKernel: boolean
}

/** The kernel side, implemented in src/signals/capture/stack-sampler.ts. */
export interface Sampler {
  readonly tables: UnwindMemory
  /** Unwinds code of this file by the table with this id from now on. */
  publish(file: FileIdentity, id: number): void
  unpublish(file: FileIdentity): void
  setRuntime(pid: number, settings: RuntimeSettings): void
  /** Reports all processes with a runtime again. */
  forgetRuntimes(): void
  /** Reports all stacks again at their next occurrence. */
  forgetStacks(): void
  /** Delivers pending stacks and files. */
  drain(): void
  /** Delivers the counts since the last call. */
  collect(visit: (count: StackCount) => void): void
  apply(sampling: Sampling): void
  close(): void
}
