import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Directories with built files: the bundle's own, which is `import.meta.dirname` there (defined by tools/bundle.ts),
 * and in development dist/, relative to this file.
 */
export const assetDirectories: readonly string[] = [
  import.meta.dirname,
  join(import.meta.dirname, '..', '..', 'dist'),
]

/** Path of a built file (`svc.node`, `sock.bpf.o`), or undefined if it does not exist. */
export function findAsset(name: string): string | undefined {
  for (const directory of assetDirectories) {
    const path = join(directory, name)
    if (existsSync(path)) return path
  }
  return undefined
}
