import { statSync } from 'node:fs'

/** Whether a socket is there. What may not be looked at counts as there: the connection then tells what is refused. */
export function isSocketThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isSocket() === true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}
