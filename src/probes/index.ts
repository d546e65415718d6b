import { sock } from './sock.ts'

/** Capture back ends, best first. */
export const backends = [sock] as const
