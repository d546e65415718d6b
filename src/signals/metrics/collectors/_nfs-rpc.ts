import { Scanner } from '../../../foundation/lib/scanner.ts'

/** Valid number counts of a line, by its first word. */
export type Shapes = Readonly<Record<string, (count: number) => boolean>>

/**
 * Numbers of the lines of a file of /proc/net/rpc, by first word. Missing lines have no entry. Throws if
 * a line has another shape, or none is known.
 */
export function parseRpc(
  bytes: Buffer,
  path: string,
  shapes: Shapes,
): ReadonlyMap<string, readonly number[]> {
  const scan = new Scanner(bytes)
  const lines = new Map<string, readonly number[]>()
  while (scan.line()) {
    const name = scan.text()
    const numbers: number[] = []
    while (!scan.done) numbers.push(scan.number())
    const isCounted = name.startsWith('proc')
    // Lines of procedures start with their count.
    if (isCounted && numbers[0] !== numbers.length - 1)
      throw new Error(`cannot read ${path}: line ${name} does not have the declared number of values`)
    const values = isCounted ? numbers.slice(1) : numbers
    if (!Object.hasOwn(shapes, name) || !shapes[name]!(values.length) || values.some(Number.isNaN))
      throw new Error(
        `cannot read ${path}: line ${lines.size + 1} is not one of ${Object.keys(shapes).join(', ')}`,
      )
    lines.set(name, values)
  }
  if (lines.size === 0) throw new Error(`cannot read ${path}: empty file`)
  return lines
}

export function exactly(count: number): (found: number) => boolean {
  return found => found === count
}

export function atLeast(count: number): (found: number) => boolean {
  return found => found >= count
}

/** Procedures of NFS version 2 in the order of their numbers (RFC 1094). */
export const procedures2 =
  'Null GetAttr SetAttr Root Lookup ReadLink Read WrCache Write Create Remove Rename Link SymLink MkDir RmDir ReadDir FsStat'.split(
    ' ',
  )

/** Procedures of NFS version 3 in the order of their numbers (RFC 1813). */
export const procedures3 =
  'Null GetAttr SetAttr Lookup Access ReadLink Read Write Create MkDir SymLink MkNod Remove RmDir Rename Link ReadDir ReadDirPlus FsStat FsInfo PathConf Commit'.split(
    ' ',
  )
