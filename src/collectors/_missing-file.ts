import { NoData, type Tree } from './collector.ts'

/** The content of a file as `bytes` reads it; undefined where there is no such file. All else is an error. */
export function bytesIfThere(tree: Tree, path: string): Buffer | undefined {
  try {
    return tree.bytes(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return undefined
  }
}

/** The same where a collector has nothing without the file, as on most hosts. `why` says what its absence means. */
export function bytesOrNoData(tree: Tree, path: string, why: string): Buffer {
  // A look costs a third of an error that is thrown.
  if (!tree.exists(path)) throw new NoData(`${tree.at(path)} not found: ${why}`)
  return tree.bytes(path)
}
