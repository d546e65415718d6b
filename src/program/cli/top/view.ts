// Data and user settings of `svc top`, from which pages are drawn.

import type { OverviewLine, PipelineLine, ServiceLine } from '../../../view/api/ui/documents.ts'

export type OverviewStart = Extract<OverviewLine, { kind: 'start' }>
export type OverviewTick = Extract<OverviewLine, { kind: 'tick' }>
export type Service = OverviewTick['services'][number]

export type Page = 'services' | 'service' | 'pipeline'

/** Sort orders of services; `worst`: the agent's order. */
const orders = ['worst', 'service', 'req/s', 'err%', 'p50', 'p95', 'p99'] as const
export type Order = (typeof orders)[number]

export interface View {
  page: Page
  /** The help covers the page. */
  help: boolean
  filter: string
  /** The filter is being typed. */
  typing: boolean
  order: Order
  errorsOnly: boolean
  /** Service at the selection bar; empty: the first. */
  selected: string
  /** Its namespace: service names are unique only per namespace. */
  namespace: string
  /** Lines of the page above the screen. */
  scrolled: number
  start: OverviewStart | undefined
  tick: OverviewTick | undefined
  service: ServiceLine | undefined
  pipeline: PipelineLine | undefined
  /** Why there is no new data; empty if there is. */
  trouble: string
}

export function newView(): View {
  return {
    page: 'services',
    help: false,
    filter: '',
    typing: false,
    order: 'worst',
    errorsOnly: false,
    selected: '',
    namespace: '',
    scrolled: 0,
    start: undefined,
    tick: undefined,
    service: undefined,
    pipeline: undefined,
    trouble: '',
  }
}

/** Applies a line of the overview. Kinds of a newer agent are ignored. */
export function take(view: View, line: OverviewLine): void {
  if (line.kind === 'start') view.start = line
  else if (line.kind === 'tick') view.tick = line
}

/** The visible services, sorted. */
export function shownServices({ tick, filter, errorsOnly, order }: View): readonly Service[] {
  const wanted = filter.toLowerCase()
  const matches = (service: Service) =>
    (!errorsOnly || service.errors_percent > 0) &&
    (wanted === '' ||
      [service.name, service.namespace, ...service.protocols, ...service.dependencies].some(text =>
        text.toLowerCase().includes(wanted),
      ))
  const found = (tick?.services ?? []).filter(matches)
  return order === 'worst' ? found : found.toSorted(comparisons[order])
}

const most = (of: (service: Service) => number | null) => (a: Service, b: Service) =>
  (of(b) ?? -1) - (of(a) ?? -1) || byName(a, b)
const byName = (a: Service, b: Service) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
const comparisons: Readonly<Record<Exclude<Order, 'worst'>, (a: Service, b: Service) => number>> = {
  service: byName,
  'req/s': most(service => service.requests_per_s),
  'err%': most(service => service.errors_percent),
  p50: most(service => service.p50_ms),
  p95: most(service => service.p95_ms),
  p99: most(service => service.p99_ms),
}

/** Index of the bar: at the selected service, otherwise at the first. */
export function barAt({ selected, namespace }: View, services: readonly Service[]): number {
  return Math.max(
    0,
    services.findIndex(each => each.name === selected && each.namespace === namespace),
  )
}

/** Effect of a key beyond the view. */
export type Wish = 'quit' | 'suspend' | undefined

/** Applies a key as named by `keys.ts`. */
export function press(view: View, key: string, pageRows: number): Wish {
  if (key === 'ctrl-c') return 'quit'
  if (key === 'ctrl-z') return 'suspend'
  if (view.typing) {
    type(view, key)
    return undefined
  }
  if (view.help) {
    view.help = false
    return undefined
  }
  switch (key) {
    case 'q':
      return 'quit'
    case '?':
    case 'h':
      view.help = true
      return undefined
    case 'p':
      open(view, view.page === 'pipeline' ? 'services' : 'pipeline')
      return undefined
    case 'escape':
    case 'backspace':
    case 'left':
      if (view.page === 'services') view.filter = ''
      open(view, 'services')
      return undefined
  }
  if (view.page === 'services') choose(view, key, pageRows)
  else scroll(view, key, pageRows)
  return undefined
}

function choose(view: View, key: string, pageRows: number): void {
  const services = shownServices(view)
  const at = barAt(view, services)
  const last = services.length - 1
  const go = (to: number) => {
    select(view, services[Math.max(0, Math.min(last, to))])
  }
  switch (key) {
    case '/':
      view.typing = true
      break
    case 's':
      view.order = orders[(orders.indexOf(view.order) + 1) % orders.length]!
      break
    case 'S':
      view.order = orders[(orders.indexOf(view.order) + orders.length - 1) % orders.length]!
      break
    case 'e':
      view.errorsOnly = !view.errorsOnly
      break
    case 'up':
    case 'k':
      go(at - 1)
      break
    case 'down':
    case 'j':
      go(at + 1)
      break
    case 'page-up':
      go(at - pageRows)
      break
    case 'page-down':
    case ' ':
      go(at + pageRows)
      break
    case 'home':
      go(0)
      break
    case 'end':
      go(last)
      break
    case 'enter':
    case 'right': {
      const service = services[at]
      if (service === undefined) break
      select(view, service)
      open(view, 'service')
    }
  }
}

function select(view: View, service: Service | undefined): void {
  view.selected = service?.name ?? ''
  view.namespace = service?.namespace ?? ''
}

function scroll(view: View, key: string, pageRows: number): void {
  const by: Readonly<Record<string, number>> = {
    up: -1,
    k: -1,
    down: 1,
    j: 1,
    'page-up': -pageRows,
    'page-down': pageRows,
    ' ': pageRows,
    home: -1e9,
    end: 1e9,
  }
  // The page limits it to the existing lines when it is drawn.
  view.scrolled = Math.max(0, view.scrolled + (by[key] ?? 0))
}

function open(view: View, page: Page): void {
  view.page = page
  view.scrolled = 0
  view.service = undefined
  view.pipeline = undefined
}

const longestFilter = 64

function type(view: View, key: string): void {
  if (key === 'enter') view.typing = false
  else if (key === 'escape') {
    view.typing = false
    view.filter = ''
  } else if (key === 'backspace') view.filter = [...view.filter].slice(0, -1).join('')
  else if (key === 'ctrl-u') view.filter = ''
  else if ([...key].length === 1 && view.filter.length < longestFilter) view.filter += key
}
