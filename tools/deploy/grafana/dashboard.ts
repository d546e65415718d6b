// A dashboard of rows of panels, as JSON for Grafana's import.
import { type Panel, prometheus } from './panel.ts'

export interface Row {
  readonly title: string
  /** Collapsed by default: its queries run when it is opened. */
  readonly folded?: boolean
  readonly panels: readonly Panel[]
}

export interface Dashboard {
  /** Constant: links and updates identify a dashboard by it. */
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly variables: readonly object[]
  readonly rows: readonly Row[]
}

/** The data sources of this kind. */
export function sourceVariable(name: string, label: string, query: string): object {
  return { type: 'datasource', name, label, query, refresh: 1, hide: 0, multi: false, options: [], regex: '' }
}

export interface QueryLook {
  readonly multi?: boolean
  readonly hidden?: boolean
}

/** Values from a query of the Prometheus data source, such as `label_values(up, job)`. */
export function queryVariable(name: string, label: string, query: string, look: QueryLook = {}): object {
  const { multi = false, hidden = false } = look
  return {
    type: 'query',
    name,
    label,
    datasource: prometheus,
    definition: query,
    query: { query, refId: 'StandardVariableQuery' },
    refresh: 2,
    sort: 1,
    regex: '',
    hide: hidden ? 2 : 0,
    multi,
    includeAll: multi,
    ...(multi
      ? { allValue: '.*', current: { selected: true, text: ['All'], value: ['$__all'] } }
      : { current: {} }),
    options: [],
  }
}

/** A choice of these values; the first is the default. */
export function choiceVariable(name: string, label: string, values: readonly string[]): object {
  const options = values.map((value, i) => ({ text: value, value, selected: i === 0 }))
  return {
    type: 'custom',
    name,
    label,
    query: values.join(','),
    current: options[0],
    options,
    hide: 0,
    multi: false,
    includeAll: false,
  }
}

export function dashboardText(dashboard: Dashboard): string {
  const { uid, title, description, variables, rows } = dashboard
  const document = {
    uid,
    title,
    description,
    tags: ['svc'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    timezone: 'browser',
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    timepicker: {},
    annotations: { list: [] },
    links: [
      {
        type: 'dashboards',
        title: 'svc',
        tags: ['svc'],
        asDropdown: true,
        keepTime: true,
        icon: 'external link',
      },
    ],
    templating: { list: variables },
    panels: placed(rows),
  }
  return `${JSON.stringify(document, null, 1)}\n`
}

/** Every row starts on a new line; its panels flow from left to right. */
function placed(rows: readonly Row[]): object[] {
  const all: object[] = []
  let id = 0
  let y = 0
  for (const { title, folded = false, panels } of rows) {
    const gridPos = { x: 0, y, w: 24, h: 1 }
    const row = { id: ++id, type: 'row', title, collapsed: folded, gridPos, panels: [] as object[] }
    all.push(row)
    y++
    let x = 0
    let tallest = 0
    for (const { width, height, json: rest } of panels) {
      if (x + width > 24) {
        x = 0
        y += tallest
        tallest = 0
      }
      const panel = { id: ++id, gridPos: { x, y, w: width, h: height }, ...rest }
      ;(folded ? row.panels : all).push(panel)
      x += width
      tallest = Math.max(tallest, height)
    }
    y += tallest
  }
  return all
}
