import { ExitCode, StartError } from '../../lib/start-error.ts'
import type { AgentClient } from '../agent-client.ts'
import { interrupted } from '../interrupted.ts'
import { followLines } from '../running-agent.ts'
import { shownJson } from '../shown-text.ts'
import { written } from '../terminal.ts'

export const overviewPath = '/ui/api/overview?seconds=60'

/** Prints the lines of the overview as the agent sends them; with `once` those that it has at once. */
export async function lines(client: AgentClient, what: string, once: boolean): Promise<ExitCode> {
  const over = interrupted()
  const onLine = async (line: string) => {
    if (!(await written(`${shownJson(line)}\n`))) over.abort()
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
