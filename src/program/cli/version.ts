import { build } from '../../foundation/lib/build.ts'
import { ExitCode } from '../../foundation/lib/start-error.ts'
import { type Command, jsonFlag } from './arguments.ts'
import { print } from './terminal.ts'

export const version: Command = {
  name: 'version',
  summary: 'print the version',
  flags: [jsonFlag],
  run: async args => {
    const { version, commit, built } = build()
    if (args.has('json')) {
      const platform = `${process.platform}-${process.arch}`
      print(`${JSON.stringify({ version, commit, built, node: process.version, platform })}\n`)
    } else {
      printVersion()
    }
    return ExitCode.ok
  },
}

/** The line of `--version`. */
export function printVersion(): void {
  const { version, commit, built } = build()
  print(`svc ${version} (commit ${commit}, built ${built})\n`)
}
