// What processes of a test file did against what it says that it owns, as guard.cjs reports it.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** For NODE_OPTIONS of a file that does not own the host. */
export const guardOptions = `--require ${JSON.stringify(join(import.meta.dirname, 'guard.cjs'))}`

/** What was reported of a file, each fault once. */
export function guardFaults(path: string, file: string): string[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line.startsWith(`${file}\t`))
  return [...new Set(lines.map(line => line.slice(file.length + 1)))]
}
