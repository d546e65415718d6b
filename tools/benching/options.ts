// The command line of tools/bench.
import { relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const usage = `usage: tools/bench [--results FILE] [NAME...] [-- OPTION...]
       tools/bench --compare OLD NEW
       tools/bench --record [FILE]
  NAME...            scripts of bench/; default: all
  --results FILE     output file, in an existing folder; default: build/bench/results.json
  -- OPTION...       options for each script, such as -- --part idle
  --compare OLD NEW  prints changes between two result files beyond noise
  --record [FILE]    records the figures of passed scripts in bench/measured.json, the source of the figures on
                     pages: bash tools/generate`

/**
 * Working directory of tools/bench's caller: the tool changes to the root of the tree, and files are relative to the
 * caller's folder.
 */
const from = process.env.BENCH_FROM ?? process.cwd()

export const defaultResults = resolve('build/bench/results.json')

export interface BenchOptions {
  readonly names: readonly string[]
  /** An absolute path, like those of `compare`. */
  readonly results: string
  /** Options for the scripts. */
  readonly args: readonly string[]
  /** The two files to compare; undefined: run scripts. */
  readonly compare: readonly [old: string, now: string] | undefined
  /** The file to record, an absolute path; undefined: record nothing. */
  readonly record: string | undefined
}

/** A path relative to the caller. */
export function callerPath(path: string): string {
  const short = relative(from, path)
  return short.startsWith('..') ? path : short
}

/** Prints a usage error, and ends the process with status 2. */
export function refuse(reason: string): never {
  console.error(`tools/bench: ${reason}\n${usage}`)
  process.exit(2)
}

export function readOptions(argv: readonly string[]): BenchOptions {
  const end = argv.indexOf('--')
  const [own, args] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end + 1)]
  try {
    const { values, positionals } = parseArgs({
      args: [...own],
      allowPositionals: true,
      options: {
        results: { type: 'string' },
        compare: { type: 'boolean', default: false },
        record: { type: 'boolean', default: false },
      },
    })
    const { compare, record } = values
    const results = values.results === undefined ? defaultResults : resolve(from, values.results)
    if (record) {
      const [file = defaultResults, ...more] = positionals
      if (compare || more.length > 0 || end >= 0) throw new Error('--record takes one file')
      return { names: [], results, args, compare: undefined, record: resolve(from, file) }
    }
    if (!compare) return { names: positionals, results, args, compare: undefined, record: undefined }
    const [old, now, ...more] = positionals
    if (old === undefined || now === undefined || more.length > 0 || end >= 0)
      throw new Error('--compare takes two files')
    if (values.results !== undefined) throw new Error('--compare writes no results')
    return { names: [], results, args, compare: [resolve(from, old), resolve(from, now)], record: undefined }
  } catch (error) {
    return refuse((error as Error).message)
  }
}
