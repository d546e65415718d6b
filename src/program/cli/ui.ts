import { ExitCode } from '../../foundation/lib/start-error.ts'
import { type Command, configFlag, jsonFlag, urlFlag } from './arguments.ts'
import { print, say } from './terminal.ts'

const what = 'print a link to the page'

export const ui: Command = {
  name: 'ui',
  summary: 'print a link that opens the live page in a browser',
  flags: [jsonFlag, configFlag, urlFlag],
  run: async args => {
    // Loaded on demand: the agent does not need it.
    const { documentOf, runningAgent } = await import('./running-agent.ts')
    const { terminalText } = await import('../../foundation/lib/terminal-text.ts')
    const client = await runningAgent(args, what)
    const { url } = await documentOf<{ url: string }>(client, '/admin/ui', what)
    if (args.has('json')) {
      print(`${JSON.stringify({ url })}\n`)
      return ExitCode.ok
    }
    print(`${terminalText(url, true)}\n`)
    say('Anyone with the link can see the page until the agent stops.\n')
    const { hostname, port } = new URL(url)
    if (hostname === '127.0.0.1' || hostname === '[::1]')
      say(`From another machine, first: ssh -L ${port}:${hostname}:${port} HOST\n`)
    return ExitCode.ok
  },
}
