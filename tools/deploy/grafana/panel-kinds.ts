// The kinds of panels in dashboards.
import { fieldConfig, instant, type Look, type Panel, panel, type Queries, refId, target } from './panel.ts'

/** Lines over time. Units are Grafana's: `bytes`, `s`, `percentunit`. */
export function lines(
  title: string,
  description: string,
  unit: string,
  queries: Queries,
  look: Look = {},
): Panel {
  const { width = 12, height = 8, stack = false, below } = look
  const custom = {
    fillOpacity: stack ? 40 : 10,
    lineWidth: 1,
    showPoints: 'never',
    stacking: { mode: stack ? 'normal' : 'none', group: 'A' },
  }
  const mirrored = { id: 'custom.transform', value: 'negative-Y' }
  const overrides =
    below === undefined ? [] : [{ matcher: { id: 'byRegexp', options: below }, properties: [mirrored] }]
  return panel('timeseries', title, description, { width, height }, queries, {
    fieldConfig: fieldConfig(unit, look, custom, overrides),
    options: {
      legend: {
        displayMode: 'table',
        placement: 'bottom',
        showLegend: true,
        calcs: ['mean', 'max', 'lastNotNull'],
      },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  })
}

/** One number. */
export function stat(
  title: string,
  description: string,
  unit: string,
  query: string | Queries,
  look: Look = {},
): Panel {
  const { width = 4, height = 4 } = look
  return panel('stat', title, description, { width, height }, one(query), {
    fieldConfig: fieldConfig(unit, look),
    options: {
      ...lastValue,
      colorMode: (look.warn ?? look.bad) === undefined ? 'none' : 'value',
      graphMode: 'none',
      textMode: 'auto',
    },
  })
}

/** A number with a maximum, as a dial. */
export function gauge(
  title: string,
  description: string,
  unit: string,
  query: string | Queries,
  look: Look,
): Panel {
  const { width = 3, height = 4 } = look
  return panel('gauge', title, description, { width, height }, one(query), {
    fieldConfig: fieldConfig(unit, { min: 0, ...look }),
    options: { ...lastValue, showThresholdLabels: false, showThresholdMarkers: true },
  })
}

/** Values of each series over time, as coloured squares. */
export function heatmap(
  title: string,
  description: string,
  unit: string,
  query: string,
  look: Look = {},
): Panel {
  const { width = 12, height = 8 } = look
  const targets = [{ ...target('A', '{{le}}', query), format: 'heatmap' }]
  return panel(
    'heatmap',
    title,
    description,
    { width, height },
    {},
    {
      targets,
      fieldConfig: fieldConfig(unit, {}),
      options: {
        calculate: false,
        cellGap: 1,
        color: { mode: 'scheme', scheme: 'Oranges', steps: 64, exponent: 0.5 },
        yAxis: { unit, axisPlacement: 'left' },
        tooltip: { mode: 'single', yHistogram: false },
      },
    },
  )
}

/** Current values as a table: each query is a column named by its key, and rows with equal labels are merged. */
export function table(
  title: string,
  description: string,
  unit: string,
  columns: Queries,
  look: Look = {},
): Panel {
  const { width = 24, height = 9, names = {} } = look
  const keys = Object.keys(columns)
  const targets = keys.map((key, i) => instant(refId(i), columns[key]!))
  const value = (i: number) => (keys.length === 1 ? 'Value' : `Value #${refId(i)}`)
  const renameByName = { ...Object.fromEntries(keys.map((key, i) => [value(i), key])), ...names }
  const sortBy = [{ displayName: keys[0], desc: true }]
  return panel(
    'table',
    title,
    description,
    { width, height },
    {},
    {
      targets,
      fieldConfig: fieldConfig(unit, look),
      options: { cellHeight: 'sm', showHeader: true, sortBy },
      transformations: [
        { id: 'merge', options: {} },
        { id: 'organize', options: { excludeByName: { Time: true }, indexByName: {}, renameByName } },
      ],
    },
  )
}

const lastValue = {
  reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
  orientation: 'auto',
}

function one(query: string | Queries): Queries {
  return typeof query === 'string' ? { '': query } : query
}
