import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { terminalJson } from '../../../foundation/lib/terminal-text.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { interrupted } from '../interrupted.ts'
import { followLines } from '../running-agent.ts'
import { written } from '../terminal.ts'

export const overviewPath = '/ui/api/overview?seconds=60'

/** Prints the lines of the overview as the agent sends them; with `once` only the initial ones. */
export async function lines(client: AgentClient, what: string, once: boolean): Promise<ExitCode> {
  const over = interrupted()
  const onLine = async (line: string) => {
    if (!(await written(`${terminalJson(line)}\n`))) over.abort()
  }
  try {
    await followLines(client, `${overviewPath}&follow=${once ? 0 : 1}`, what, onLine, over.signal)
  } finally {
    over.stop()
  }
  if (once || over.signal.aborted) return ExitCode.ok
  throw new StartError(
    `cannot ${what} any longer: the agent at ${client.address} has stopped`,
    ExitCode.general,
  )
}
