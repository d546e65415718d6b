import { ExitCode } from '../../foundation/lib/start-error.ts'
import { type Command, configFlag, jsonFlag, urlFlag } from './arguments.ts'

export const status: Command = {
  name: 'status',
  summary: 'show the status of the running agent: degraded features, export and data loss',
  flags: [jsonFlag, configFlag, urlFlag],
  exits: { [ExitCode.general]: 'the agent is not ready, or no agent answers' },
  async run(args) {
    // Loaded on demand: the agent does not need it.
    const { agentStatus } = await import('./status/agent-status.ts')
    return agentStatus(args)
  },
}
