import { amountText, msText } from '../../../../foundation/lib/number-text.ts'
import { fitted, padLeft, padRight, widthOf } from '../../../../foundation/lib/terminal-text.ts'
import type { Line, Piece } from '../line.ts'
import { barAt, type Service, shownServices, type View } from '../view.ts'
import { type Canvas, errorLook } from './page.ts'

const numberWidths = { 'req/s': 6, 'err%': 6, p50: 6, p95: 6, p99: 6 } as const
/** Width of the five columns of numbers, with their gaps. */
const numbersWidth = 5 * 7
const narrowest = 12
const usual = 18
const widest = 36

/** The table, with a selection bar if the user can move it. */
export function servicesLines(view: View, canvas: Canvas, rows: number, bar: boolean): Line[] {
  const services = shownServices(view)
  const widths = widthsFor(services, canvas)
  const head = headerLine(view, widths)
  if (services.length === 0) return [head, ...emptyLines(view)]
  const at = barAt(view, services)
  const room = Math.max(1, rows - 1)
  // Keeps the bar visible, and scrolls no more than necessary.
  view.scrolled = Math.max(Math.min(view.scrolled, at, services.length - room), at - room + 1, 0)
  const shown = services.slice(view.scrolled, view.scrolled + room)
  return [
    head,
    ...shown.map((service, i) => serviceLine(service, canvas, widths, bar && view.scrolled + i === at)),
  ]
}

/** Widths of the text columns. Names take only what they need, and leave some for the callees. */
interface Widths {
  readonly name: number
  readonly protocol: number
  readonly calls: number
}

function widthsFor(services: readonly Service[], { columns, shown }: Canvas): Widths {
  const protocol = columns >= 100 ? 10 : 7
  const longest = services.reduce((most, { name }) => Math.max(most, widthOf(shown(name))), 0)
  // The bar, a gap before the protocol, and two before the calls.
  const spare = columns - protocol - numbersWidth - 4
  const room = Math.max(narrowest, Math.floor(spare * 0.55))
  const name = Math.max(Math.min(longest, room, widest), Math.min(usual, room))
  return { name, protocol, calls: Math.max(0, spare - name) }
}

function headerLine({ order }: View, { name, protocol }: Widths): Line {
  const cell = (title: string, text: string): Piece => (order === title ? [text, 'bold'] : [text, 'dim'])
  return [
    ' ',
    cell('service', padRight('SERVICE', name)),
    ' ',
    [padRight('PROTO', protocol), 'dim'],
    ...Object.entries(numberWidths).flatMap(([title, columns]) => [
      ' ',
      cell(title, padLeft(title, columns)),
    ]),
    ['  CALLS', 'dim'],
  ]
}

function serviceLine(
  service: Service,
  { unicode, shown }: Canvas,
  { name, protocol, calls: room }: Widths,
  marked: boolean,
): Line {
  const { errors_percent, requests_per_s, p50_ms, p95_ms, p99_ms, serves } = service
  const look = marked ? 'inverse' : undefined
  const errors = `${amountText(errors_percent)}${errors_percent > 0 ? (unicode ? '▲' : '!') : ' '}`
  const numbers = [p50_ms, p95_ms, p99_ms].map(ms => padLeft(msText(ms), 6)).join(' ')
  // A service that only makes calls has no requests of its own: its numbers are calls.
  const protocols = service.protocols.map(shown).join(',') || '-'
  const line: Piece[] = [
    [`${marked ? '>' : ' '}${padRight(shown(service.name), name)} ${padRight(protocols, protocol)} `, look],
    [`${padLeft(`${amountText(requests_per_s)}${serves ? '' : '>'}`, 6)} `, look],
    [padLeft(errors, 6), marked ? 'inverse' : errorLook(errors_percent)],
    [` ${numbers}  `, look],
  ]
  const calls = fitted(service.dependencies.map(shown).join(', '), room)
  return [...line, [marked ? padRight(calls, room) : calls, look]]
}

function emptyLines(view: View): Line[] {
  const { tick, filter, errorsOnly } = view
  if (tick === undefined) return [[], ['  Waiting for the agent.']]
  if (tick.services.length > 0) {
    const chosen = [
      ...(filter === '' ? [] : [`the filter "${filter}"`]),
      ...(errorsOnly ? ['"errors only"'] : []),
    ].join(' and ')
    return [
      [],
      [`  None of ${tick.services.length} services matches ${chosen}.`],
      ['  esc clears the filter, e shows all.'],
    ]
  }
  return [
    [],
    ['  No requests yet.'],
    ['  Send a request to a service of this host; if it does not appear here, find out why:'],
    ['    svc explain PORT'],
  ]
}
