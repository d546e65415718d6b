import { ExitCode } from '../lib/start-error.ts'
import { type Command, configFlag, jsonFlag, urlFlag } from './arguments.ts'

export const status: Command = {
  name: 'status',
  summary: 'say how the agent that runs is: what works, what is limited, what is sent and what is lost',
  flags: [jsonFlag, configFlag, urlFlag],
  exits: { [ExitCode.general]: 'the agent is not ready, or none answers' },
  async run(args) {
    // Loaded here, for an agent that runs needs none of it.
    const { agentStatus } = await import('./status/agent-status.ts')
    return agentStatus(args)
  },
}
