import { ExitCode } from '../../../foundation/lib/start-error.ts'
import { terminalJson, terminalText } from '../../../foundation/lib/terminal-text.ts'
import type { ExplainDocument } from '../../../view/api/ui/documents.ts'
import type { Arguments } from '../arguments.ts'
import { penOf } from '../pen.ts'
import { withProgress } from '../progress.ts'
import { documentOf, runningAgent } from '../running-agent.ts'
import { output, written } from '../terminal.ts'
import { explanation } from './explanation.ts'

/** All processes of the host may have to be read. */
const patienceMs = 60_000

/**
 * Queries the agent about a target and prints the answer. Exit code 1: something is not observed, or the target does
 * not exist.
 */
export async function explainTarget(args: Arguments, target: string): Promise<ExitCode> {
  const what = `explain ${terminalText(target, true)}`
  const client = await runningAgent(args, what)
  const path = `/ui/api/explain?target=${encodeURIComponent(target)}`
  const document = await withProgress(
    `looking for ${terminalText(target, true)}`,
    documentOf<ExplainDocument>(client, path, what, patienceMs),
  )
  const { color, unicode, columns } = output()
  await written(
    args.has('json')
      ? `${terminalJson(JSON.stringify(document, null, 2))}\n`
      : explanation(document, { unicode, columns: Math.min(columns, 120), pen: penOf(color) }),
  )
  const { subjects } = document
  const isFine = subjects.length > 0 && subjects.every(({ verdict }) => verdict !== 'not_observed')
  return isFine ? ExitCode.ok : ExitCode.general
}
