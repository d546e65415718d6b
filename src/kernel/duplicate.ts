import { loadNative, Unsupported } from './native.ts'

/** Duplicates a descriptor (fcntl(2), F_DUPFD_CLOEXEC). Throws if no descriptor is free, or there is no addon. */
export function duplicate(fd: number): number {
  const native = loadNative()
  if (native instanceof Unsupported) throw new Error(native.reason)
  return native.duplicate(fd)
}
