import { fitted } from '../shown-text.ts'
import { type Line, spread } from './line.ts'
import { headLine } from './pages/head.ts'
import { helpLines } from './pages/help.ts'
import { type Canvas, scrolledLines } from './pages/page.ts'
import { pipelineLines } from './pages/pipeline.ts'
import { serviceLines } from './pages/service.ts'
import { servicesLines } from './pages/services.ts'
import { shownServices, type View } from './view.ts'

/** What is above and below the page: the host's line, a finding or trouble, the keys. */
const around = 3

/** Rows that the page itself has. */
export function pageRows({ rows }: Pick<Canvas, 'rows'>): number {
  return Math.max(1, rows - around)
}

/** The whole screen, a line for each row but the last that are empty. */
export function frameOf(view: View, canvas: Canvas): Line[] {
  const rows = pageRows(canvas)
  const body = bodyOf(view, canvas, rows).slice(0, rows)
  const filler = Array.from({ length: rows - body.length }, (): Line => [])
  return [headLine(view, canvas), ...body, ...filler, findingLine(view, canvas), keysLine(view, canvas)]
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

/** What a person should know first: that nothing new comes, else the worst that the agent found. */
function findingLine({ trouble, tick }: View, { shown }: Canvas): Line {
  if (trouble !== '') return [' ', [shown(trouble), 'red']]
  const worst = tick?.findings.find(({ level }) => level === 'bad' || level === 'warn')
  if (worst === undefined) return []
  const command = worst.command === '' ? '' : `  (${shown(worst.command)})`
  return [
    ' ',
    [`${worst.level === 'bad' ? '!' : '-'} ${shown(worst.text)}`, worst.level === 'bad' ? 'red' : 'yellow'],
    command,
  ]
}

function keysLine(view: View, { columns }: Canvas): Line {
  if (view.typing)
    return [' filter: ', [view.filter, 'bold'], ['_', 'dim'], ['   enter keeps it, esc clears it', 'dim']]
  if (view.page !== 'services') return [[' esc back  up down scroll  p pipeline  ? help  q quit', 'dim']]
  const all = view.tick?.services.length ?? 0
  const shown = shownServices(view).length
  const chosen = [
    ...(shown === all ? [] : [`${shown} of ${all}`]),
    ...(view.filter === '' ? [] : [`"${fitted(view.filter, 12)}"`]),
    ...(view.errorsOnly ? ['errors only'] : []),
    `by ${view.order} `,
  ]
  const keys = ' / filter  s sort  e errors  enter open  p pipeline  ? help  q quit'
  return spread(
    [[keys, 'dim']],
    [[chosen.join(', '), view.filter === '' && !view.errorsOnly ? 'dim' : 'bold']],
    columns,
  )
}
