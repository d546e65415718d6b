import { NoData, type Tree } from './collector.ts'

/** Content of a file, as from `bytes`; undefined if missing. Throws any other error. */
export function bytesIfPresent(tree: Tree, path: string): Buffer | undefined {
  try {
    return tree.bytes(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/** Content of a file without which a collector has no data, as on most hosts. `why` is the meaning of its absence. */
export function bytesOrNoData(tree: Tree, path: string, why: string): Buffer {
  // A check costs a third of a thrown error.
  if (!tree.exists(path)) throw new NoData(`${tree.at(path)} not found: ${why}`)
  return tree.bytes(path)
}
