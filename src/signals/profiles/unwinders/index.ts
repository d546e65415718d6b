import { cpython } from './cpython.ts'
import { v8 } from './v8.ts'

/** In the order in which they check a file. */
export const runtimes = [v8, cpython] as const
