import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { type Command, configFlag, jsonFlag, urlFlag } from './arguments.ts'

export const top: Command = {
  name: 'top',
  summary: 'show the services of this host live: requests, errors, durations, callees',
  flags: [
    { name: 'once', summary: 'print one frame and exit; the default if standard output is not a terminal' },
    jsonFlag,
    configFlag,
    urlFlag,
  ],
  async run(args) {
    // Loaded on demand: the agent does not need it.
    const [{ runningAgent }, { output }] = await Promise.all([
      import('./running-agent.ts'),
      import('./terminal.ts'),
    ])
    const what = 'show the services'
    const client = await runningAgent(args, what)
    const once = args.has('once')
    if (args.has('json')) return (await import('./top/lines.ts')).lines(client, what, once)
    const { interactive } = output()
    if (once || !interactive || process.env.TERM === 'dumb')
      return (await import('./top/still.ts')).still(client, what)
    const hasAgentGone = await (await import('./top/live.ts')).live(client, what)
    if (hasAgentGone)
      throw new StartError(
        `cannot ${what} any longer: the agent at ${client.address} has stopped`,
        ExitCode.general,
      )
    return ExitCode.ok
  },
}
