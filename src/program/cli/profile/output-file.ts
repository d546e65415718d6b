import {
  accessSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { errorText } from '../../../foundation/lib/logger.ts'
import { ExitCode, exitCodeOf, StartError } from '../../../foundation/lib/start-error.ts'

/** Throws before the recording if a file cannot be written. Only a regular file is replaced. */
export function checkOutput(path: string): void {
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there && !there.isFile())
    throw new StartError(`cannot write ${path}: not a regular file`, ExitCode.usage)
  try {
    accessSync(dirname(path), constants.W_OK)
  } catch (error) {
    throw failed(path, error)
  }
}

/** Written beside, then moved into place: never visible half-written, and private. */
export function writeOutput(path: string, bytes: Buffer): void {
  const partial = `${path}.${process.pid}.partial`
  let fd: number
  try {
    fd = openSync(partial, 'wx', 0o600)
  } catch (error) {
    throw failed(path, error) // someone else's file stays
  }
  try {
    try {
      writeFileSync(fd, bytes)
    } finally {
      closeSync(fd)
    }
    renameSync(partial, path)
  } catch (error) {
    rmSync(partial, { force: true })
    throw failed(path, error)
  }
}

function failed(path: string, error: unknown): StartError {
  return new StartError(`cannot write ${path}: ${errorText(error)}`, exitCodeOf(error), error)
}
