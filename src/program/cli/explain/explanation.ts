import { padRight, terminalText, wrapped } from '../../../foundation/lib/terminal-text.ts'
import type { ExplainDocument } from '../../../view/api/ui/documents.ts'
import type { Look, Pen } from '../pen.ts'

interface Style {
  readonly unicode: boolean
  readonly columns: number
  readonly pen: Pen
}

type Subject = ExplainDocument['subjects'][number]

const looks: Readonly<Record<string, Look | undefined>> = {
  observed: 'green',
  limited: 'yellow',
  not_observed: 'red',
  missing: 'red',
}
const verdicts = {
  observed: 'observed',
  limited: 'observed, with limits',
  not_observed: 'not observed',
} as const

/**
 * An explanation as text. Each subject has its title, its verdict, and a line for each topic with the hint below it.
 */
export function explanation({ target, subjects, hint }: ExplainDocument, style: Style): string {
  const { unicode } = style
  const lines = subjects.flatMap((subject, i) => [...(i === 0 ? [] : ['']), ...subjectLines(subject, style)])
  const nothing = subjects.length === 0 ? [`Nothing found for ${terminalText(target, unicode)}.`] : []
  const hints = hint === '' ? [] : wrapped(terminalText(hint, unicode), style.columns)
  return [...nothing, ...lines, ...hints].map(line => `${line.trimEnd()}\n`).join('')
}

function subjectLines({ title, verdict, cause, steps: lines }: Subject, style: Style): string[] {
  const { unicode, pen } = style
  const shown = (text: string) => terminalText(text, unicode)
  const topics = lines.reduce((most, { topic }) => Math.max(most, shown(topic).length), 9)
  const why = cause === '' || verdict === 'observed' ? '' : ` (${shown(cause)})`
  return [
    pen(shown(title), 'bold'),
    `  ${padRight('', topics)}  ${pen(`${verdicts[verdict] ?? shown(verdict)}${why}`, looks[verdict])}`,
    ...lines.flatMap(line => topicLines(line, topics, style)),
  ]
}

function topicLines(
  { topic, state, text, hint }: Subject['steps'][number],
  topics: number,
  style: Style,
): string[] {
  const { unicode, columns, pen } = style
  const indent = ' '.repeat(topics + 4)
  const room = Math.max(30, columns - indent.length)
  // The state must not depend on colour alone.
  const sign = state === 'missing' ? 'missing: ' : state === 'limited' ? 'limited: ' : ''
  const [first = '', ...rest] = wrapped(sign + terminalText(text, unicode), room)
  return [
    `  ${pen(padRight(terminalText(topic, unicode), topics), 'dim')}  ${pen(first, looks[state])}`,
    ...rest.map(line => indent + pen(line, looks[state])),
    ...(hint === '' ? [] : wrapped(`Fix: ${terminalText(hint, unicode)}`, room).map(line => indent + line)),
  ]
}
