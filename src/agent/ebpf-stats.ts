// Run times of eBPF programs, which the kernel measures while somebody asks for them.

import { loadNative, type StatsHandle, Unsupported } from '../kernel/native.ts'
import type { Logger } from '../lib/logger.ts'

/** Undefined where the kernel does not measure programs: before 5.8, or without CAP_SYS_ADMIN. */
export function statsOf(log: Logger): StatsHandle | undefined {
  try {
    const native = loadNative()
    return native instanceof Unsupported ? undefined : native.statsEnable()
  } catch (error) {
    log.warn('the kernel does not measure eBPF programs', { error })
    return undefined
  }
}

export function statsDisable(stats: StatsHandle): void {
  const native = loadNative()
  if (!(native instanceof Unsupported)) native.statsDisable(stats)
}
