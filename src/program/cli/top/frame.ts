import { fitted, widthOf } from '../../../foundation/lib/terminal-text.ts'
import { type Line, spread } from './line.ts'
import { headLine } from './pages/head.ts'
import { helpLines } from './pages/help.ts'
import { type Canvas, scrolledLines } from './pages/page.ts'
import { pipelineLines } from './pages/pipeline.ts'
import { serviceLines } from './pages/service.ts'
import { servicesLines } from './pages/services.ts'
import { shownServices, type View } from './view.ts'

/** Lines around the page: the host, a finding or error, the keys. */
const around = 3

/** Rows available to the page. */
export function pageRows({ rows }: Pick<Canvas, 'rows'>): number {
  return Math.max(1, rows - around)
}

/** The whole screen, one line per row, without empty rows at the end. */
export function frameOf(view: View, canvas: Canvas): Line[] {
  const rows = pageRows(canvas)
  const body = bodyOf(view, canvas, rows).slice(0, rows)
  const filler = Array.from({ length: rows - body.length }, (): Line => [])
  return [headLine(view, canvas), ...body, ...filler, findingLine(view, canvas), keysLine(view)]
}

function bodyOf(view: View, canvas: Canvas, rows: number): Line[] {
  if (view.help) return helpLines()
  switch (view.page) {
    case 'services':
      return servicesLines(view, canvas, rows, true)
    case 'service':
      return scrolledLines(serviceLines(view, canvas), rows, view)
    case 'pipeline':
      return scrolledLines(pipelineLines(view, canvas), rows, view)
  }
}

/** The most important message: lost connection, otherwise the agent's worst finding; and the user's selection. */
function findingLine(view: View, canvas: Canvas): Line {
  const finding = findingPieces(view, canvas)
  const chosen = chosenText(view)
  if (chosen === '') return finding
  // The selection explains missing rows, so it is never cut.
  const [sign = '', text = ''] = finding.map(piece => (typeof piece === 'string' ? piece : piece[0]))
  const look = typeof finding[1] === 'string' ? undefined : finding[1]?.[1]
  const room = canvas.columns - widthOf(chosen) - 4
  return spread([sign, [fitted(text, room), look]], [[chosen, 'bold']], canvas.columns - 1)
}

function findingPieces({ trouble, tick }: View, { shown }: Canvas): Line {
  if (trouble !== '') return [' ', [shown(trouble), 'red']]
  const worst = tick?.findings.find(({ level }) => level === 'bad' || level === 'warn')
  if (worst === undefined) return []
  const [sign, look] = worst.level === 'bad' ? (['!', 'red'] as const) : (['-', 'yellow'] as const)
  const command = worst.command === '' ? '' : ` (${shown(worst.command)})`
  return [' ', [`${sign} ${shown(worst.text)}${command}`, look]]
}

function chosenText(view: View): string {
  if (view.page !== 'services' || view.help) return ''
  const all = view.tick?.services.length ?? 0
  const shown = shownServices(view).length
  return [
    ...(shown === all ? [] : [`${shown} of ${all}`]),
    ...(view.filter === '' || view.typing ? [] : [`"${fitted(view.filter, 20)}"`]),
    ...(view.errorsOnly ? ['errors only'] : []),
    ...(view.order === 'worst' ? [] : [`by ${view.order}`]),
  ].join(', ')
}

function keysLine(view: View): Line {
  if (view.typing)
    return [' filter: ', [view.filter, 'bold'], ['_', 'dim'], ['   enter keeps it, esc clears it', 'dim']]
  if (view.page !== 'services') return [[' esc back  up down scroll  p pipeline  ? help  q quit', 'dim']]
  return [[' / filter  s sort  e errors only  enter open  p pipeline  ? help  q quit', 'dim']]
}
