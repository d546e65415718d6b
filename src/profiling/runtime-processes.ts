import { readFileSync } from 'node:fs'
import { BoundedMap } from '../lib/bounded-map.ts'
import { errorText } from '../lib/logger.ts'
import { ProcessMemory } from '../lib/process-memory.ts'
import type { Frame } from '../model/profile.ts'
import type { RuntimeSettings, UnknownRuntime } from '../model/raw-stack.ts'
import { notStarted, type RuntimeFile, type RuntimeProcess, type RuntimeUnit } from '../unwinders/runtime.ts'
import type { KnownFile } from './workshop.ts'

interface Attached {
  readonly unit: RuntimeUnit
  readonly memory: ProcessMemory
  readonly process: RuntimeProcess
  /** When it was started: its number may be another one's by now. */
  readonly started: string
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
    const process = attached(runtime.file, memory, start - address)
    if (typeof process === 'string') {
      memory.close()
      if (process === notStarted) return undefined
      tell(process)
      return {}
    }
    this.attached.set(pid, { unit: runtime.unit, memory, process, started: startOf(pid) })
    return process.settings
  }

  /** Lets go of those that ended: each keeps a descriptor. */
  closeEnded(): void {
    this.attached.forEach(({ started }, pid) => {
      if (startOf(pid) !== started) this.forget(pid)
    })
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

/** Its memory may hold anything. */
function attached(file: RuntimeFile, memory: ProcessMemory, bias: number): RuntimeProcess | string {
  try {
    return file.attach(memory, bias)
  } catch (error) {
    return errorText(error)
  }
}

/** In clock ticks since boot (proc_pid_stat(5), field 22); '' where it is gone. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ', 20)[19] ?? ''
  } catch {
    return ''
  }
}
