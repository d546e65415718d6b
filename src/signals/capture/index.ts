import { sock } from './sock.ts'
import { syscalls } from './syscalls.ts'

/** Capture back ends, best first. */
export const backends = [sock, syscalls] as const
