import type { Frame } from '../../../src/foundation/model/profile.ts'
import type { RuntimeProcess } from '../../../src/signals/profiles/unwinders/runtime.ts'
import type { ScriptProgram } from './script-program.ts'

export interface PythonStack {
  /** The system's id of the thread. */
  readonly thread: number
  readonly frames: Frame[]
  readonly entries: boolean[]
}

/** Frames of the thread that had the global lock last, leaf first, read as the kernel side reads them. */
export function pythonStack(program: ScriptProgram, runtime: RuntimeProcess): PythonStack {
  const { memory } = program
  const python = runtime.settings.python!
  const thread = memory.pointer(python.runtime + python.currentThread)
  const holder = memory.pointer(thread + python.frameHolder)
  const frames: Frame[] = []
  const entries: boolean[] = []
  let frame = python.frameInHolder < 0 ? holder : memory.pointer(holder + python.frameInHolder)
  while (frame !== 0 && frames.length < 1000) {
    frames.push(runtime.name(memory.pointer(frame + python.code)))
    entries.push(memory.u8(frame + python.entry) !== 0)
    frame = memory.pointer(frame + python.previous)
  }
  return { thread: memory.u64(thread + python.nativeThreadId)!, frames, entries }
}
