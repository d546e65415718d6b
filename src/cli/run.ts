import { type Command, configFlag, levelFlag, modeFlag } from './arguments.ts'
import { endProcess } from './end-process.ts'

export const run: Command = {
  name: 'run',
  summary: 'run the agent',
  flags: [configFlag, modeFlag, levelFlag],
  run: async args => {
    const { runAgent } = await import('./run-agent.ts')
    // A start that failed half way may have left something open, which must not keep the process.
    endProcess(await runAgent(args, async options => (await import('../agent.ts')).startAgent(options)))
  },
}
