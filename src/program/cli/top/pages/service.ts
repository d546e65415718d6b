import { amountText, countText, msText } from '../../../../foundation/lib/number-text.ts'
import { padLeft, padRight } from '../../../../foundation/lib/terminal-text.ts'
import type { ServiceLine } from '../../../../view/api/ui/documents.ts'
import { barsOf } from '../../bars.ts'
import type { Line, Piece } from '../line.ts'
import type { View } from '../view.ts'
import { type Canvas, errorLook } from './page.ts'

/** One service: its requests, callers, dependencies, routes and identity. */
export function serviceLines(view: View, canvas: Canvas): Line[] {
  const { shown } = canvas
  const { service: line, selected } = view
  if (line === undefined) return [[], [`  Waiting for the agent’s data about ${shown(selected)}.`]]
  if (!line.found)
    return [
      [],
      [`  No requests of ${shown(selected)} in this window.`],
      ['  Send it a request, or find out why:'],
      [`    svc explain ${shown(selected)}`],
    ]
  return [
    ...summaryLines(line, canvas),
    ...neighbourLines(line, canvas),
    ...routeLines(line, canvas),
    ...resourceLines(line, canvas),
  ]
}

function summaryLines(
  { service, requests_per_s, errors_per_s, p95_ms, step_ms }: ServiceLine,
  canvas: Canvas,
) {
  const { unicode, shown, columns } = canvas
  const { name, namespace, protocols, errors_percent } = service
  const where = namespace === '' ? '' : ` in ${shown(namespace)}`
  const what = `${protocols.map(shown).join(', ')}${service.serves ? '' : ', only calls others'}`
  const bars = Math.max(10, Math.min(columns - 34, 90))
  const span = msText(Math.min(bars, requests_per_s.length) * step_ms)
  const row = (title: string, value: string, values: readonly (number | null)[], look?: Piece[1]): Line => [
    ` ${padRight(title, 10)}`,
    [padRight(value, 10), look as 'red' | undefined],
    barsOf(values, bars, unicode),
  ]
  return [
    [' ', [shown(name), 'bold'], `${where}  ${what}`],
    [
      ['  now, and over the last ', 'dim'],
      [span, 'dim'],
    ],
    row('req/s', amountText(service.requests_per_s), requests_per_s),
    row('errors', `${amountText(errors_percent)}%`, errors_per_s, errorLook(errors_percent)),
    row('p95', msText(service.p95_ms), p95_ms),
    [` ${padRight('p50', 10)}${padRight(msText(service.p50_ms), 10)}p99 ${msText(service.p99_ms)}`],
    [],
  ] satisfies Line[]
}

function neighbourLines({ callers, callees }: ServiceLine, { shown }: Canvas): Line[] {
  const named = (found: ServiceLine['callers']) =>
    found.map(each => `${shown(each.name)} ${amountText(each.requests_per_s)}/s`).join(', ') || 'none'
  return [[[' called by ', 'dim'], named(callers)], [[' calls     ', 'dim'], named(callees)], []]
}

function routeLines({ routes }: ServiceLine, { shown, columns }: Canvas): Line[] {
  if (routes.length === 0) return []
  const width = Math.max(16, Math.min(columns - 28, 60))
  const head: Line = [
    [
      ` ${padRight('OPERATION', width)} ${padLeft('SPANS', 7)} ${padLeft('ERRORS', 7)} ${padLeft('SLOWEST', 8)}`,
      'dim',
    ],
  ]
  return [
    head,
    ...routes.map(
      ({ name, spans, errors, slowest_ms }): Line => [
        ` ${padRight(shown(name), width)} ${padLeft(countText(spans), 7)} `,
        [padLeft(`${countText(errors)}${errors > 0 ? '!' : ''}`, 7), errors > 0 ? 'red' : undefined],
        ` ${padLeft(msText(slowest_ms), 8)}`,
      ],
    ),
    [],
  ]
}

function resourceLines({ resource }: ServiceLine, { shown }: Canvas): Line[] {
  return Object.entries(resource).map(([key, value]) => [
    ' ',
    [shown(key), 'dim'],
    ' ',
    shown(typeof value === 'string' ? value : JSON.stringify(value)),
  ])
}
