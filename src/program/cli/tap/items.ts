import { counted, msText } from '../../../foundation/lib/number-text.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { padLeft, padRight, terminalJson, terminalText } from '../../../foundation/lib/terminal-text.ts'
import type { TapLine } from '../../../view/api/ui/documents.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { interrupted } from '../interrupted.ts'
import { type Pen, penOf } from '../pen.ts'
import { followLines, parsed } from '../running-agent.ts'
import { output, say, written } from '../terminal.ts'
import type { TapOrder } from './order.ts'

type Item = Extract<TapLine, { kind: 'item' }>

/** Delay before showing that it is waiting. */
const patienceMs = 2000

/** Prints items as they arrive, until enough of them or an interruption. */
export async function tapItems(client: AgentClient, order: TapOrder): Promise<ExitCode> {
  const what = `tap ${order.signal}`
  const over = interrupted()
  const { color, unicode } = output()
  const pen = penOf(color)
  let items = 0
  let skipped = 0
  const waiting = setTimeout(() => say(`waiting for ${wantedText(order)}\n`), patienceMs)
  const onLine = async (text: string) => {
    const line = parsed<TapLine>(text, what)
    if (line.kind === 'skipped') skipped += line.items
    if (line.kind !== 'item' || items >= order.most) return
    clearTimeout(waiting)
    items++
    const isTaken = await written(
      order.json ? `${terminalJson(JSON.stringify(line.otlp ?? null))}\n` : itemText(line, unicode, pen),
    )
    if (!isTaken || items >= order.most) over.abort()
  }
  try {
    await followLines(client, pathOf(order), what, onLine, over.signal)
  } finally {
    clearTimeout(waiting)
    over.stop()
  }
  if (skipped > 0) say(`${counted(skipped, 'item')} more were too fast to show\n`)
  if (over.signal.aborted) return ExitCode.ok
  throw new StartError(
    `cannot ${what} any longer: the agent at ${client.address} has stopped`,
    ExitCode.general,
  )
}

function pathOf({ signal, service, errors, minMs, json }: TapOrder): string {
  const query = new URLSearchParams({ signal, follow: '1' })
  if (service !== '') query.set('service', service)
  if (errors) query.set('errors', '1')
  if (minMs > 0) query.set('min_ms', String(minMs))
  if (json) query.set('otlp', '1')
  return `/ui/api/tap?${query}`
}

function wantedText({ signal, service, errors, minMs }: TapOrder): string {
  const conditions = [
    ...(service === '' ? [] : [`of ${terminalText(service, false)}`]),
    ...(errors ? ['with errors'] : []),
    ...(minMs > 0 ? [`of ${msText(minMs)} or more`] : []),
  ]
  return [signal, ...conditions, `(ctrl-c to stop; if nothing appears: ${askedFor(signal, service)})`].join(
    ' ',
  )
}

/** A command that explains why a signal has no data. */
function askedFor(signal: TapOrder['signal'], service: string): string {
  if (signal === 'traces') return `svc explain ${service === '' ? 'PORT' : terminalText(service, false)}`
  return `svc doctor ${signal === 'metrics' ? 'host' : signal}`
}

/** `12:00:01.234 cart  GET /cart/*  8.2ms  details`, failures marked and red. */
function itemText(item: Item, unicode: boolean, pen: Pen): string {
  const { time_ms, service, title, duration_ms, error, detail } = item
  const shown = (text: string) => terminalText(text, unicode)
  const head = [
    pen(timeText(time_ms), 'dim'),
    pen(padRight(shown(service) || '-', 18), 'cyan'),
    ...(duration_ms === null ? [] : [padLeft(msText(duration_ms), 6)]),
    pen(error ? '!' : ' ', 'red'),
    pen(shown(title), error ? 'red' : undefined),
  ]
  return `${[...head, ...(detail === '' ? [] : [pen(shown(detail), 'dim')])].join(' ')}\n`
}

/** Local time of day. */
function timeText(ms: number): string {
  const at = new Date(ms)
  const two = (number: number) => String(number).padStart(2, '0')
  const milliseconds = String(at.getMilliseconds()).padStart(3, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${milliseconds}`
}
