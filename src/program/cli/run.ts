import { ExitCode } from '../../foundation/lib/start-error.ts'
import { type Command, configFlag, levelFlag, modeFlag } from './arguments.ts'
import { endProcess } from './end-process.ts'

export const run: Command = {
  name: 'run',
  summary: 'run the agent',
  flags: [configFlag, modeFlag, levelFlag],
  exits: {
    [ExitCode.general]: 'an address is in use, or the agent failed',
    [ExitCode.usage]: 'the configuration is invalid, or a file in it cannot be used',
    [ExitCode.ebpf]: 'agent.ebpf.required is true, but eBPF does not work',
    [ExitCode.permission]: 'no permission for a port below 1024 or a file',
  },
  run: async args => {
    const { runAgent } = await import('./run-agent.ts')
    // A failed start may have left something open that would keep the process alive.
    endProcess(
      await runAgent(args, async options => {
        const { beginLoads } = await import('../agent/begin-loads.ts')
        beginLoads(options.loaded.config)
        return (await import('../agent.ts')).startAgent(options)
      }),
    )
  },
}
