import { loadNative, type Native, Unsupported } from '../../src/kernel/native.ts'

/** The addon, which tests cannot do without. */
export function nativeOrThrow(): Native {
  const native = loadNative()
  if (native instanceof Unsupported) throw new Error(`${native.reason}: ${native.mend}`)
  return native
}
