// Violations of a test file's `owns` by its processes, as reported by guard.cjs.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** NODE_OPTIONS of a file that does not own the host. */
export const guardOptions = `--require ${JSON.stringify(join(import.meta.dirname, 'guard.cjs'))}`

/** The reported faults of a file, without duplicates. */
export function guardFaults(path: string, file: string): string[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter(line => line.startsWith(`${file}\t`))
  return [...new Set(lines.map(line => line.slice(file.length + 1)))]
}
