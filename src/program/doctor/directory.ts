import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorText } from '../../foundation/lib/logger.ts'

/** Whether a directory can be written, or made where it is not there: by the nearest one that is. Makes nothing. */
export function nearestWritable(
  directory: string,
): { readonly existing: string } | { readonly refused: string } {
  let existing = directory
  try {
    existing = nearest(directory)
    if (!statSync(existing).isDirectory()) return { refused: `${existing} is not a directory` }
    accessSync(existing, constants.W_OK | constants.X_OK)
    return { existing }
  } catch (error) {
    return { refused: `${existing}: ${errorText(error)}` }
  }
}

/** The directory, or the nearest above it that is there. */
function nearest(directory: string): string {
  let at = directory
  while (statSync(at, { throwIfNoEntry: false }) === undefined && dirname(at) !== at) at = dirname(at)
  return at
}
