import { readFileSync } from 'node:fs'
import type { Frame } from '../../../src/foundation/model/profile.ts'
import type { RuntimeProcess } from '../../../src/signals/profiles/unwinders/runtime.ts'
import type { ScriptProgram } from './script-program.ts'

/** Tagged pointers end in 01. */
const tag = 1

/**
 * JavaScript's frames of the main thread of a stopped program, leaf first, from the first function of that name on: by
 * the chain of frame pointers, as the kernel side finds them.
 */
export function javascriptStack(program: ScriptProgram, runtime: RuntimeProcess, leaf: string): Frame[] {
  const { memory } = program
  const stack = program.areas().find(({ path }) => path === '[stack]')!
  const words = readFileSync(`/proc/${program.pid}/syscall`, 'latin1').trim().split(' ')
  const functionAt = (fp: number): number => {
    const context = memory.pointer(fp - 8)
    const target = memory.pointer(fp - 16)
    if (context % 8 !== tag || target % 8 !== tag) return 0
    return Math.max(0, memory.pointer(target - tag + runtime.settings.v8Shared!) - tag)
  }
  const isRecord = (fp: number) => memory.pointer(fp) > fp && memory.pointer(fp) < stack.end
  let fp = Number(words.at(-2))
  fp += -fp & 7
  while (fp < stack.end) {
    const shared = isRecord(fp) ? functionAt(fp) : 0
    if (shared !== 0 && runtime.name(shared).name === leaf) break
    fp += 8
  }
  const frames: Frame[] = []
  for (; isRecord(fp); fp = memory.pointer(fp)) {
    const shared = functionAt(fp)
    if (shared !== 0) frames.push(runtime.name(shared))
  }
  return frames
}
