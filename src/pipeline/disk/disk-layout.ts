// Where the queue on disk lies: <directory>/v1/default/<signal>/, with the LOCK of the process that owns it beside v1.

import { join } from 'node:path'
import type { Signal } from '../../model/signal.ts'

/** The version of the layout and of the files' format. Directories of others are left alone. */
export const layoutVersion = 'v1'

/** The one destination. A configured name and never derived from an address, so that a new address orphans nothing. */
const destination = 'default'

export function signalDirectory(directory: string, signal: Signal): string {
  return join(directory, layoutVersion, destination, signal)
}

export function lockPath(directory: string): string {
  return join(directory, 'LOCK')
}
