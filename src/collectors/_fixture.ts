import { readFileSync } from 'node:fs'

/** Fields of one object by their names in lower case, as the exporter that is replaced takes them. */
export type Fields = Readonly<Record<string, unknown>>

/** The objects in a file of JSON that stands for what the kernel says; undefined where there is none. */
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

/** A number of a fixture; 0 where it is not there. */
export function numberOf(fields: Fields, name: string): number {
  const value = fields[name] ?? 0
  if (typeof value !== 'number') throw new Error(`cannot read a fixture: ${name} is not a number`)
  return value
}

/** A text of a fixture; '' where it is not there. */
export function textOf(fields: Fields, name: string): string {
  const value = fields[name] ?? ''
  if (typeof value !== 'string') throw new Error(`cannot read a fixture: ${name} is not a string`)
  return value
}

function lowerCase(item: unknown): Fields {
  if (typeof item !== 'object' || item === null) throw new Error('an item is not an object')
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name.toLowerCase(), value]))
}
