import { statSync } from 'node:fs'

/** Whether a socket exists. A path without permission counts as existing, so that the connection reports the error. */
export function socketExists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isSocket() === true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}
