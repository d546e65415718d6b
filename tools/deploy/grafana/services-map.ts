// Calls between services: the map, and the same as a table.
import type { Row } from './dashboard.ts'
import { instant, panel } from './panel.ts'
import { lines, table } from './panel-kinds.ts'

const rate = (name: string, by: string) => `sum by (${by}) (rate(traces_service_graph_request_${name}[RATE]))`
const copied = (expr: string, to: string, from: string) =>
  `label_replace(${expr}, "${to}", "$1", "${from}", "(.*)")`
/** Every service once, as caller or callee: its incoming requests. */
const asked = copied(rate('total', 'server'), 'id', 'server')
const asking = copied(`0 * ${rate('total', 'client')}`, 'id', 'client')
const nodes = copied(`sum by (id) (${asked} or ${asking})`, 'title', 'id')
const pair = rate('total', 'client, server')
const edges = `label_join(${copied(copied(pair, 'source', 'client'), 'target', 'server')}, "id", " → ", "client", "server")`
const pairs = 'client, server'
const failures = `(${rate('failed_total', pairs)} or 0 * ${pair}) / (${pair} > 0)`
const p95 = (side: string) => `histogram_quantile(0.95, ${rate(`${side}_seconds_bucket`, `le, ${pairs}`)})`

/** The panel takes one table with the columns source and target as edges, and another as nodes. */
const map = panel(
  'nodeGraph',
  'Map',
  'Calls between services, with requests per second. A service on a host without svc is shown by its address.',
  { width: 24, height: 14 },
  {},
  {
    targets: [instant('nodes', nodes), instant('edges', edges)],
    fieldConfig: { defaults: { unit: 'reqps' }, overrides: [] },
    options: { nodes: { mainStatUnit: 'reqps' }, edges: { mainStatUnit: 'reqps' } },
    transformations: [{ id: 'renameByRegex', options: { regex: '^Value.*$', renamePattern: 'mainstat' } }],
  },
)

export const mapRow: Row = {
  title: 'Map',
  panels: [
    map,
    table(
      'Calls between services',
      'The map as a table; durations as measured by the server and by the client.',
      'reqps',
      {
        Requests: pair,
        Failures: failures,
        'p95 of the server': p95('server'),
        'p95 of the client': p95('client'),
      },
      { units: { Failures: 'percentunit', 'p95 of the server': 's', 'p95 of the client': 's' } },
    ),
    lines(
      'Requests by edge',
      'Requests per second.',
      'reqps',
      { '{{client}} → {{server}}': pair },
      { min: 0 },
    ),
    lines(
      'Failures by edge',
      'Share of failed requests.',
      'percentunit',
      { '{{client}} → {{server}}': failures },
      { min: 0 },
    ),
  ],
}
