import { hostPort } from '../../../foundation/lib/host-port.ts'
import { parseListenAddress } from '../../../foundation/lib/listen-address.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { terminalJson } from '../../../foundation/lib/terminal-text.ts'
import type { ExportDocument, StatusDocument } from '../../../view/api/types.ts'
import type { PipelineLine } from '../../../view/api/ui/documents.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { isForOthers } from '../../client/agent-client.ts'
import type { Arguments } from '../arguments.ts'
import { configurationOf } from '../configuration.ts'
import { penOf } from '../pen.ts'
import { withProgress } from '../progress.ts'
import { answerOf, documentOf, readAs, runningAgent } from '../running-agent.ts'
import { output, say, written } from '../terminal.ts'
import { type Readiness, statusText } from './status-text.ts'

const what = 'show the status'
const uiPath = '/ui/api/pipeline'

/** Prints the state of the agent. Exit code 1: it is not ready. */
export async function agentStatus(args: Arguments): Promise<ExitCode> {
  const client = await runningAgent(args, what)
  const asked = Promise.all([
    documentOf<StatusDocument>(client, '/status', what),
    answerOf(client, '/ready', what).then(answer => readAs<Readiness>(answer, '/ready', what, [200, 503])),
    documentOf<ExportDocument>(client, '/status/export', what),
    balanceOf(client),
  ])
  const [status, ready, exporting, pipeline] = await withProgress('querying the agent', asked)
  const page = pipeline === null ? '' : pageUrl(args, client)
  const { color, unicode, columns } = output()
  const found = { status, ready, export: exporting, pipeline, page }
  await written(
    args.has('json')
      ? `${terminalJson(JSON.stringify(found, null, 2))}\n`
      : drawn(() => statusText(found, { unicode, columns: Math.min(columns, 120), pen: penOf(color) })),
  )
  return ready.status === 'ready' ? ExitCode.ok : ExitCode.general
}

/** Throws a `StartError` if documents lack expected fields: the address may be another server's. */
function drawn(draw: () => string): string {
  try {
    return draw()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const message = `cannot ${what}: the answer is not that of an svc agent of this version; restart svc after an upgrade`
    throw new StartError(message, ExitCode.general)
  }
}

/** Where data was lost and why; null if the agent keeps no data for the page. */
async function balanceOf(client: AgentClient): Promise<PipelineLine | null> {
  const answer = await answerOf(client, uiPath, what)
  if (isForOthers(answer)) {
    say('Only root and the user of svc can see data loss and its reasons: use sudo.\n')
    return null
  }
  return answer.status === 404 ? null : readAs<PipelineLine>(answer, uiPath, what)
}

/** The URL for a browser on this host; '' if only the socket listens. */
function pageUrl(args: Arguments, { address }: AgentClient): string {
  if (!address.startsWith('unix:')) return `${address}/ui`
  const { enabled, listen, tls } = configurationOf(args).config.self_telemetry
  const at = parseListenAddress(listen)
  if (!enabled || at === undefined || at.port === 0) return ''
  const { host = '0.0.0.0', port } = at
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${tls.enabled ? 'https' : 'http'}://${hostPort(local, port)}/ui`
}
