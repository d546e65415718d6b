import { readFileSync } from 'node:fs'
import { FairShare, isSameOwner, type Owner } from '../../foundation/lib/fair-share.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import type { Frame } from '../../foundation/model/profile.ts'
import type { RuntimeSettings, UnknownRuntime } from '../../foundation/model/raw-stack.ts'
import { ProcessMemory } from '../../kernel/process-memory.ts'
import type { KnownFile } from './unwind-table-builder.ts'
import { notStarted, type RuntimeFile, type RuntimeProcess, type RuntimeUnit } from './unwinders/runtime.ts'

interface Attached {
  readonly unit: RuntimeUnit
  readonly memory: ProcessMemory
  readonly process: RuntimeProcess
  /** Start time: the number may have been reused. */
  readonly started: string
  readonly owner: Owner
  bytes: number
}

/** Each keeps a descriptor open. */
const mostProcesses = 256
/** Bytes of all cached names, and the minimum charge of a process with names. */
const mostBytes = 16 * 1024 * 1024
const leastBytes = mostBytes / mostProcesses

/** Processes with a supported runtime, by number. */
export class RuntimeProcesses {
  readonly losses = { refused: 0, taken: 0 }
  readonly #attached = new Map<number, Attached>()
  readonly #share = new FairShare(mostBytes)
  readonly #ownerOf: (pid: number) => Owner

  constructor(ownerOf: (pid: number) => Owner) {
    this.#ownerOf = ownerOf
  }

  get size(): number {
    return this.#attached.size
  }

  /**
   * Settings for the kernel side to read the process: empty if it cannot be read, and `tell` receives the reason.
   * Undefined if not known yet: the kernel side asks again.
   */
  attach(
    { pid, start, offset }: UnknownRuntime,
    { elf, runtime }: KnownFile,
    tell: (reason: string) => void,
  ): RuntimeSettings | undefined {
    this.#forget(pid)
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
    const owner = this.#ownerOf(pid)
    this.#attached.set(pid, {
      unit: runtime.unit,
      memory,
      process,
      started: startOf(pid),
      owner,
      bytes: leastBytes,
    })
    this.#share.add(owner, leastBytes)
    this.#shrink(pid)
    return process.settings
  }

  /** Charges new names to a process. */
  charge(pid: number, bytes: number): void {
    const attached = this.#attached.get(pid)
    if (attached === undefined) return
    attached.bytes += bytes
    this.#share.add(attached.owner, bytes)
    this.#shrink(pid)
  }

  /** The largest owner loses names, then processes, first attached first. */
  #shrink(used: number): void {
    while (!this.#share.hasRoom(0)) {
      const from = this.#share.richest()
      const named = this.#first(from, ({ bytes }) => bytes > leastBytes)
      if (named !== undefined) {
        const attached = this.#attached.get(named)!
        attached.process.forgetNames()
        this.#share.remove(attached.owner, attached.bytes - leastBytes)
        attached.bytes = leastBytes
        continue
      }
      const pid = this.#first(from, (_, each) => each !== used) ?? used
      this.losses.taken++
      this.#forget(pid)
    }
  }

  #first(from: Owner | undefined, isMeant: (attached: Attached, pid: number) => boolean): number | undefined {
    for (const [pid, attached] of this.#attached)
      if (isSameOwner(attached.owner, from) && isMeant(attached, pid)) return pid
    return undefined
  }

  /** Releases ended processes: each keeps a descriptor. */
  closeEnded(): void {
    for (const [pid, { started }] of this.#attached) if (startOf(pid) !== started) this.#forget(pid)
  }

  unit(pid: number): RuntimeUnit | undefined {
    return this.#attached.get(pid)?.unit
  }

  /** Announces the next pointers. */
  expect(pid: number, pointers: readonly number[]): void {
    if (pointers.length > 0) this.#attached.get(pid)?.process.expect(pointers)
  }

  /** Frame of a pointer; undefined if the process is unknown. */
  name(pid: number, pointer: number): Frame | undefined {
    return this.#attached.get(pid)?.process.name(pointer)
  }

  #forget(pid: number): void {
    const attached = this.#attached.get(pid)
    if (attached === undefined) return
    attached.memory.close()
    this.#share.remove(attached.owner, attached.bytes)
    this.#attached.delete(pid)
  }
}

/** Its memory may contain anything. */
function attached(file: RuntimeFile, memory: ProcessMemory, bias: number): RuntimeProcess | string {
  try {
    return ProcessMemory.inOneTurn(() => file.attach(memory, bias))
  } catch (error) {
    return errorText(error)
  }
}

/** Clock ticks since boot (proc_pid_stat(5), field 22); '' if it is gone. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ', 20)[19] ?? ''
  } catch {
    return ''
  }
}
