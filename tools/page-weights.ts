// Transfer size of the built page: for bundle-ui.ts, which compares it with budgets.json, and for benchmarks.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'

/** Bytes, compressed with brotli. */
export interface PageWeights {
  /** Before any page: files that index.html loads immediately. */
  readonly first: number
  /** Including the overview, which is the first page. */
  readonly overview: number
  readonly all: number
}

/** Weighs the files in `folder`, as written by tools/bundle-ui.ts. */
export function pageWeights(folder: string): PageWeights {
  const files = new Map(
    readdirSync(folder)
      .filter(name => name.endsWith('.br'))
      .map(name => [name.slice(0, -3), readFileSync(join(folder, name))] as const),
  )
  /** Immediate dependencies of a file; `import(…)` loads later. */
  const needed = (name: string, found = new Set<string>()): Set<string> => {
    if (found.has(name)) return found
    found.add(name)
    const text = brotliDecompressSync(files.get(name)!).toString()
    const named = name.endsWith('.html') ? /\/assets\/([\w.-]+)"/g : /(?:\bfrom|\bimport)\s*"\.\/([\w.-]+)"/g
    for (const [, next] of text.matchAll(named)) needed(next!, found)
    return found
  }
  const sum = (names: Iterable<string>) =>
    [...names].reduce((total, name) => total + files.get(name)!.length, 0)
  const first = needed('index.html')
  const overview = [...files.keys()].find(name => /^overview-.*\.js$/.test(name))!
  return { first: sum(first), overview: sum(needed(overview, new Set(first))), all: sum(files.keys()) }
}
