import type { Frame } from '../../../../foundation/model/profile.ts'

/** Frame that C creates below Python frames when it enters the interpreter (since 3.12). */
export const shim: Frame = { name: '[CPython: entry from C]', file: '', line: 0, type: 'cpython' }

const loop = '_PyEval_EvalFrameDefault'
/** One function per instruction, called in turn by the loop (3.14, if the compiler supports it). */
const tailCall = '_TAIL_CALL_'
/** Functions between a C caller and the loop. */
const doors = new Set(['_PyEval_Vector', '_PyEval_EvalFrame', '_PyFunction_Vectorcall', 'PyEval_EvalCode'])

/**
 * Replaces the interpreter's loop by Python frames. Each run of the loop on the C stack covers the frames up to the one
 * where C entered. If the two do not match, nothing is dropped:
 *
 *   more loops, complete Python frames    innermost loops have no frame yet, and stay C functions
 *   more loops, truncated Python frames   outermost loops stay C functions
 *   more entries                          the outermost loop covers the rest
 *   no loop                               Python frames follow the C frames
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
      // Its loop follows.
      if (loops <= early || inner.length === 0) merged.push(frame)
    } else if (!(isInside && doors.has(frame.name))) {
      isInside = false
      merged.push(frame)
    }
  }
  take(merged, inner, taken, inner.length)
  return merged
}

/** End of each run of the loop among the Python frames. */
function runEnds(inner: readonly Frame[], entries: readonly boolean[]): number[] {
  // With shims, the mark of other frames means that a generator owns them.
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
