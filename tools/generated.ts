// Generated files of the tree, never edited by hand.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Generated {
  /** Path in the tree. */
  readonly file: string
  readonly text: () => string
}

const root = join(import.meta.dirname, '..')

/** Writes stale files. With --check writes nothing, names them and makes this program exit with 1. */
export function writeGenerated(generator: string, all: readonly Generated[]): void {
  const stale = all.filter(({ file, text }) => current(file) !== text())
  if (process.argv.includes('--check')) {
    for (const { file } of stale) console.error(`${file} is stale: run ${generator}`)
    process.exitCode = stale.length > 0 ? 1 : 0
    return
  }
  for (const { file, text } of stale) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text())
  }
}

function current(file: string): string | undefined {
  try {
    return readFileSync(join(root, file), 'utf8')
  } catch {
    return undefined // not written yet
  }
}
