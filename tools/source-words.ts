// Finds the attributes that a part of the program sets, in its sources, where all of them are written out.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Files of an area that one of its files imports, itself included; paths in the tree. */
export function reachable(entry: string, area: string): readonly string[] {
  const found = new Set<string>()
  const follow = (file: string) => {
    if (found.has(file)) return
    found.add(file)
    for (const [, target] of read(file).matchAll(/from '(\.[^']+)'/g)) {
      const path = join(dirname(file), target!)
      if (path.startsWith(area)) follow(path)
    }
  }
  follow(entry)
  return [...found]
}

/** Source files below a directory, without tests. */
export function sourcesOf(directory: string): readonly string[] {
  return readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map(file => join(directory, file))
    .sort()
}

/** Keys of the attributes that these files set, sorted. */
export function attributesOf(files: readonly string[]): readonly string[] {
  // A call, or a pair of a list that is set in a loop.
  const set =
    /(?:\b(?:add|set|addBoth)\(\s*(?:\w+,\s*)?|\[(?=[^,]+, \w+\.))'([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)',/g
  return [...new Set(files.flatMap(file => [...read(file).matchAll(set)].map(([, key]) => key!)))].sort()
}

/** Words used in these files as `prefix.word`, sorted. */
export function wordsOf(files: readonly string[], prefix: string): readonly string[] {
  const word = new RegExp(`\\b${prefix}\\.(\\w+)`, 'g')
  return [...new Set(files.flatMap(file => [...read(file).matchAll(word)].map(([, name]) => name!)))].sort()
}

/** Whether one of these files imports the name from a file with this suffix. */
export function imports(files: readonly string[], name: string, from: string): boolean {
  return files.some(file =>
    [...read(file).matchAll(/import \{([^}]*)\} from '([^']+)'/g)].some(
      ([, names, path]) => path!.endsWith(from) && new RegExp(`\\b${name}\\b`).test(names!),
    ),
  )
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}
