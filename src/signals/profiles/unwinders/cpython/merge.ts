import type { Frame } from '../../../../foundation/model/profile.ts'

/** The frame that C put below those of Python when it entered the interpreter (since 3.12). */
export const shim: Frame = { name: '[CPython: entry from C]', file: '', line: 0, type: 'cpython' }

const loop = '_PyEval_EvalFrameDefault'
/** A function per instruction, called one after another by the loop (3.14, where the compiler can do it). */
const tailCall = '_TAIL_CALL_'
/** What stands between a caller in C and the loop. */
const doors = new Set(['_PyEval_Vector', '_PyEval_EvalFrame', '_PyFunction_Vectorcall', 'PyEval_EvalCode'])

/**
 * Puts Python's frames in the place of the interpreter's loop. Each run of the loop on the C stack covers the frames up
 * to the one by which C entered. Where the two do not agree, nothing is dropped:
 *
 *   more loops, and Python's frames are whole   the innermost ones have made no frame yet, and stay C functions
 *   more loops, and Python's frames are cut     the outermost ones stay C functions
 *   more entries                                the outermost loop covers all that is left
 *   no loop                                     Python's frames follow those of C
 */
export function mergeFrames(
  native: readonly Frame[],
  inner: readonly Frame[],
  entries: readonly boolean[],
): Frame[] {
  const ends = runEnds(inner, entries)
  const loops = native.reduce((count, frame) => count + (isLoop(frame) ? 1 : 0), 0)
  const isWhole = ends.at(-1) === inner.length
  const runs = isWhole ? ends.length : ends.length + 1
  const early = isWhole ? Math.max(0, loops - runs) : 0
  const merged: Frame[] = []
  let met = 0
  let taken = 0
  let isInside = false
  for (const frame of native) {
    if (isLoop(frame)) {
      const run = met++ - early
      const end = met === loops ? inner.length : (ends[run] ?? inner.length)
      const before = merged.length
      if (run >= 0) taken = take(merged, inner, taken, end)
      isInside = merged.length > before
      if (!isInside) merged.push(frame)
    } else if (frame.name.startsWith(tailCall)) {
      // The loop that it belongs to follows.
      if (loops <= early || inner.length === 0) merged.push(frame)
    } else if (!(isInside && doors.has(frame.name))) {
      isInside = false
      merged.push(frame)
    }
  }
  take(merged, inner, taken, inner.length)
  return merged
}

/** Where each run of the loop ends among Python's frames. */
function runEnds(inner: readonly Frame[], entries: readonly boolean[]): number[] {
  // Where there are shims the mark of other frames says something else: that a generator owns them.
  const hasShims = inner.includes(shim)
  const ends: number[] = []
  inner.forEach((frame, index) => {
    if (entries[index] && (!hasShims || frame === shim)) ends.push(index + 1)
  })
  return ends
}

function take(merged: Frame[], inner: readonly Frame[], from: number, to: number): number {
  for (let index = from; index < to; index++) {
    const frame = inner[index]!
    if (frame !== shim) merged.push(frame)
  }
  return Math.max(from, to)
}

/** Compilers split a function into parts: `….cold`, `….constprop.0`. */
function isLoop({ name }: Frame): boolean {
  return name === loop || name.startsWith(`${loop}.`)
}
