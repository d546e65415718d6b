import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { terminalText } from '../../../foundation/lib/terminal-text.ts'
import type { OverviewLine } from '../../../view/api/ui/documents.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { interrupted } from '../interrupted.ts'
import { penOf } from '../pen.ts'
import { followLines, parsed } from '../running-agent.ts'
import { output, written } from '../terminal.ts'
import { lineText } from './line.ts'
import { overviewPath } from './lines.ts'
import { headLine } from './pages/head.ts'
import type { Canvas } from './pages/page.ts'
import { servicesLines } from './pages/services.ts'
import { newView, take } from './view.ts'

/** Time limit for the first data; a healthy agent sends it at once. */
const patienceMs = 15_000

/** Prints the current state, all services, and ends. */
export async function still(client: AgentClient, what: string): Promise<ExitCode> {
  const view = newView()
  const over = interrupted()
  let isLate = false
  const late = setTimeout(() => {
    isLate = true
    over.abort()
  }, patienceMs)
  const onLine = (line: string) => {
    take(view, parsed<OverviewLine>(line, what))
    if (view.start && view.tick) over.abort()
  }
  try {
    await followLines(client, `${overviewPath}&follow=1`, what, onLine, over.signal)
  } finally {
    over.stop()
    clearTimeout(late)
  }
  if (view.tick === undefined) {
    if (isLate)
      throw new StartError(
        `cannot ${what}: no data from ${client.address} within ${patienceMs / 1000} s; check its load with svc status`,
        ExitCode.general,
      )
    if (over.signal.aborted) return ExitCode.ok
    throw new StartError(
      `cannot ${what}: ${client.address} sent no data; is it an svc agent?`,
      ExitCode.general,
    )
  }
  const { color, unicode, columns } = output()
  const rows = view.tick.services.length + 10
  const canvas: Canvas = { columns, rows, unicode, shown: text => terminalText(text, unicode) }
  const pen = penOf(color)
  const lines = [headLine(view, canvas), ...servicesLines(view, canvas, rows, false)]
  await written(lines.map(line => `${lineText(line, columns, pen).trimEnd()}\n`).join(''))
  return ExitCode.ok
}
