import { smallPool } from './foundation/lib/buffer-pool.ts'
import { errorText } from './foundation/lib/logger.ts'
import { ExitCode, StartError } from './foundation/lib/start-error.ts'
import { helpText, parseArguments } from './program/cli/arguments.ts'
import { commands } from './program/cli/index.ts'
import { ignoreBrokenPipes, print, say } from './program/cli/terminal.ts'
import { printVersion } from './program/cli/version.ts'

async function main(argv: readonly string[]): Promise<ExitCode> {
  const line = parseArguments(argv, commands)
  if (typeof line === 'string') {
    const [named] = argv
    const known = commands.some(({ name }) => name === named)
    say(`svc: ${line}\nRun "svc ${known ? `${named} ` : ''}--help" for usage.\n`)
    return ExitCode.usage
  }
  const { command, implied, args } = line
  if (args.has('help')) {
    print(helpText(commands, implied ? undefined : command))
    return ExitCode.ok
  }
  if (args.has('version')) {
    printVersion()
    return ExitCode.ok
  }
  const file = args.value('validate-config')
  if (file === undefined) return command.run(args)
  return (await import('./program/cli/validate-file.ts')).validateFile(args, file)
}

smallPool()
ignoreBrokenPipes()
main(process.argv.slice(2)).then(
  code => {
    process.exitCode = code
  },
  (error: unknown) => {
    const expected = error instanceof StartError
    say(`svc: ${expected || !(error instanceof Error) ? errorText(error) : (error.stack ?? error.message)}\n`)
    process.exitCode = expected ? error.exitCode : ExitCode.general
  },
)
