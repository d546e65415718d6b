import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorText } from '../../foundation/lib/logger.ts'

/** Whether a directory is writable, or can be created, judged by its nearest existing ancestor. Creates nothing. */
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

/** The directory, or its nearest existing ancestor. */
function nearest(directory: string): string {
  let at = directory
  while (statSync(at, { throwIfNoEntry: false }) === undefined && dirname(at) !== at) at = dirname(at)
  return at
}
