import { BoundedMap } from '../lib/bounded-map.ts'
import { ProcessMemory } from '../lib/process-memory.ts'
import type { Frame } from '../model/profile.ts'
import type { RuntimeSettings, UnknownRuntime } from '../model/raw-stack.ts'
import { notStarted, type RuntimeProcess, type RuntimeUnit } from '../unwinders/runtime.ts'
import type { KnownFile } from './workshop.ts'

interface Attached {
  readonly unit: RuntimeUnit
  readonly memory: ProcessMemory
  readonly process: RuntimeProcess
}

/** Each keeps a descriptor open. */
const mostProcesses = 256

/** Processes whose runtime is read, by their numbers. */
export class RuntimeProcesses {
  private readonly attached = new BoundedMap<number, Attached>(mostProcesses, (_pid, { memory }) =>
    memory.close(),
  )

  get size(): number {
    return this.attached.size
  }

  /**
   * How the kernel side reads the process: by nothing where it cannot be read, and `tell` is told why not. Undefined where
   * that is not known yet: the kernel side asks again.
   */
  attach(
    { pid, start, offset }: UnknownRuntime,
    { elf, runtime }: KnownFile,
    tell: (reason: string) => void,
  ): RuntimeSettings | undefined {
    this.forget(pid)
    const address = elf?.addressOf(offset)
    if (runtime === undefined || address === undefined) return {}
    const memory = ProcessMemory.open(pid)
    if (memory === undefined) return undefined // it ended
    const process = runtime.file.attach(memory, start - address)
    if (typeof process === 'string') {
      memory.close()
      if (process === notStarted) return undefined
      tell(process)
      return {}
    }
    this.attached.set(pid, { unit: runtime.unit, memory, process })
    return process.settings
  }

  unit(pid: number): RuntimeUnit | undefined {
    return this.attached.get(pid)?.unit
  }

  /** The frame of a pointer; undefined: nothing is known of the process. */
  name(pid: number, pointer: number): Frame | undefined {
    return this.attached.get(pid)?.process.name(pointer)
  }

  private forget(pid: number): void {
    this.attached.get(pid)?.memory.close()
    this.attached.delete(pid)
  }
}
