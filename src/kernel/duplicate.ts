import { loadNative, Unsupported } from './native.ts'

/** Duplicates a descriptor (fcntl(2), F_DUPFD_CLOEXEC). Throws where there is no room for it, or no addon. */
export function duplicate(fd: number): number {
  const native = loadNative()
  if (native instanceof Unsupported) throw new Error(native.reason)
  return native.duplicate(fd)
}
