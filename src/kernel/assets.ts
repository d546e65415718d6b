import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Where built files are looked for: beside the bundle, whose directory is `import.meta.dirname` there (defined by
 * tools/bundle.ts), and in development in dist/, seen from this file.
 */
export const assetDirectories: readonly string[] = [
  import.meta.dirname,
  join(import.meta.dirname, '..', '..', 'dist'),
]

/** Path of a built file (`svc.node`, `sock.bpf.o`), or undefined where there is none. */
export function findAsset(name: string): string | undefined {
  for (const directory of assetDirectories) {
    const path = join(directory, name)
    if (existsSync(path)) return path
  }
  return undefined
}
