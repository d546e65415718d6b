import { readFileSync } from 'node:fs'

/** Fields of one object by their names in lower case, as in the replaced exporter. */
export type Fields = Readonly<Record<string, unknown>>

/** Objects in a JSON file that replaces the kernel's answers in tests; undefined if missing. */
export function readFixture(path: string): readonly Fields[] | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return [JSON.parse(text)].flat().map(lowerCase)
  } catch (error) {
    throw new Error(`cannot read ${path}: not JSON`, { cause: error })
  }
}

/** A number of a fixture; 0 if missing. */
export function numberOf(fields: Fields, name: string): number {
  const value = fields[name] ?? 0
  if (typeof value !== 'number') throw new Error(`cannot read a fixture: ${name} is not a number`)
  return value
}

/** A string of a fixture; '' if missing. */
export function textOf(fields: Fields, name: string): string {
  const value = fields[name] ?? ''
  if (typeof value !== 'string') throw new Error(`cannot read a fixture: ${name} is not a string`)
  return value
}

function lowerCase(item: unknown): Fields {
  if (typeof item !== 'object' || item === null) throw new Error('an item is not an object')
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name.toLowerCase(), value]))
}
