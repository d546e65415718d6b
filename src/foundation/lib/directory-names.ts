import { type Dir, opendirSync } from 'node:fs'

/** Names that are fetched at once. */
const bufferSize = 256

/**
 * The names in a directory, in its order, at most so many. They are read as they are asked for: a directory of a million
 * names, such as the descriptors of a process can be, holds nobody up who lets others have their turns between two. None
 * where it cannot be read.
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
    return null // it has gone, as the descriptors of a process that ends
  }
}
