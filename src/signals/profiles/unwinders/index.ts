import { cpython } from './cpython.ts'
import { v8 } from './v8.ts'

/** Asked in this order what a file is. */
export const runtimes = [v8, cpython] as const
