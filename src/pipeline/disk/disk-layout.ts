// Layout of the disk queue: <directory>/v1/default/<signal>/, with the LOCK of the owning process beside v1.

import { join } from 'node:path'
import type { Signal } from '../../foundation/model/signal.ts'

/** Version of the layout and the file format. Directories of other versions are left unchanged. */
export const layoutVersion = 'v1'

/** The only destination. A fixed name, not derived from an address, so that a new address orphans no data. */
const destination = 'default'

export function signalDirectory(directory: string, signal: Signal): string {
  return join(directory, layoutVersion, destination, signal)
}

export function lockPath(directory: string): string {
  return join(directory, 'LOCK')
}
