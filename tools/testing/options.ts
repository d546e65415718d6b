// The command line of tools/test.
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

const usage = `usage: tools/test [OPTION...] [FILE...]
  FILE...                     test files, or folders of them, with their output
  --since COMMIT              tests that the changes since a commit can affect
  --soak                      full counts of tests; continues after an interruption
  --anew                      with --soak: starts over
  --coverage                  reports covered lines and branches of src
  --at-once N                 maximum number of parallel files; default: two more than there are CPUs
  --limit SECONDS             time limit of a file; default: 480, in a soak 7200
  --test-name-pattern TEXT    tests whose name contains this
  --help                      this text`

export interface RunOptions {
  /** Absolute paths. */
  readonly files: readonly string[]
  readonly since: string | undefined
  readonly soak: boolean
  readonly fresh: boolean
  readonly coverage: boolean
  readonly atOnce: number
  readonly limitMs: number
  readonly patterns: readonly string[]
}

/** Ends the process on a request for help, and with status 2 if an argument is invalid. */
export function readOptions(): RunOptions {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        since: { type: 'string' },
        soak: { type: 'boolean', default: false },
        anew: { type: 'boolean', default: false },
        coverage: { type: 'boolean', default: false },
        'at-once': { type: 'string', default: String(availableParallelism() + 2) },
        limit: { type: 'string' },
        help: { type: 'boolean', default: false },
        'test-name-pattern': { type: 'string', multiple: true, default: [] },
      },
    })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    const whole = (name: string, text: string): number => {
      if (!/^[1-9]\d{0,5}$/.test(text))
        throw new Error(`--${name} takes a whole number from 1 on, not "${text}"`)
      return Number(text)
    }
    if (values.since !== undefined && positionals.length > 0)
      throw new Error('--since chooses the files itself: leave FILE out')
    if (values.anew && (!values.soak || positionals.length > 0))
      throw new Error('--anew requires --soak without files')
    const atOnce = whole('at-once', values['at-once'])
    if (atOnce > 64) throw new Error('--at-once takes 64 at most')
    return {
      files: positionals.map(file => resolve(process.env.TEST_CALLER ?? '.', file)),
      since: values.since,
      soak: values.soak,
      fresh: values.anew,
      coverage: values.coverage,
      atOnce,
      // The longest test of a soak takes an hour.
      limitMs: 1000 * whole('limit', values.limit ?? (values.soak ? '7200' : '480')),
      patterns: values['test-name-pattern'],
    }
  } catch (error) {
    console.error(`tools/test: ${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}
