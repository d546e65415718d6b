import { type Dir, opendirSync } from 'node:fs'

/** Names read at once. */
const bufferSize = 256

/**
 * The names in a directory, unsorted, up to `most`. They are read lazily: the caller can yield between names of a
 * directory with a million of them, such as a process's descriptors. Empty if unreadable.
 */
export function* namesIn(path: string, most = Number.POSITIVE_INFINITY): Generator<string, void> {
  let directory: Dir
  try {
    directory = opendirSync(path, { bufferSize })
  } catch {
    return
  }
  try {
    for (let i = 0; i < most; i++) {
      const entry = entryOf(directory)
      if (entry === null) return
      yield entry.name
    }
  } finally {
    directory.closeSync()
  }
}

function entryOf(directory: Dir) {
  try {
    return directory.readSync()
  } catch {
    return null // it was removed, like the descriptors of an exiting process
  }
}
