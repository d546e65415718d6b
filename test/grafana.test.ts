// Dashboards and rules ask for nothing that svc does not tell, and a real Prometheus understands what they ask.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  alertFile,
  dashboard,
  dashboardNames,
  filledIn,
  knownSeries,
  type Panel,
  panelsOf,
  recordingFile,
  rulesOf,
  undeclared,
} from './helpers/grafana.ts'
import { startPrometheus, withoutPrometheus } from './helpers/prometheus-server.ts'
import { askedBy } from './helpers/promql.ts'

const boards = dashboardNames.map(name => [name, dashboard(name)] as const)
const rules = [...rulesOf(recordingFile), ...rulesOf(alertFile)]

/** Every expression with its place. */
const expressions = [
  ...boards.flatMap(([name, board]) =>
    panelsOf(board).flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ expr }) =>
        expr === undefined ? [] : [[`${name}: ${title}`, filledIn(expr)] as const],
      ),
    ),
  ),
  ...rules.map(({ record, alert, expr }) => [`rule ${record ?? alert}`, expr] as const),
]

test('every metric and label that a panel or rule asks for is declared by a unit', async () => {
  const known = await knownSeries()
  const faults = expressions.flatMap(([place, expr]) =>
    undeclared(expr, known).map(fault => `${place}: ${fault}`),
  )
  assert.ok(expressions.length > 300)
  assert.deepEqual(faults, [])
})

test('legends and variables name labels that are there, too', async () => {
  const known = await knownSeries()
  const faults: string[] = []
  for (const [name, board] of boards) {
    for (const { title, targets = [] } of panelsOf(board))
      for (const { expr = '', legendFormat = '' } of targets) {
        const { selectors, labels } = askedBy(filledIn(expr))
        const there = new Set([
          'instance',
          'service_name',
          ...labels,
          ...selectors.flatMap(({ metric }) => [...(known.get(metric) ?? [])]),
        ])
        for (const [, label] of filledIn(legendFormat).matchAll(/\{\{(\w+)\}\}/g))
          if (!there.has(label!)) faults.push(`${name}: ${title}: the legend has ${label}`)
      }
    for (const { definition = '' } of board.templating.list) {
      const [, query, label] = /^label_values\((.+), (\S+)\)$/.exec(definition) ?? []
      if (query !== undefined)
        faults.push(...undeclared(`sum by (${filledIn(label!)}) (${filledIn(query)})`, known))
    }
  }
  assert.deepEqual(faults, [])
})

test('a metric that nobody has, a label of another one and a group by nothing are found', async () => {
  const known = await knownSeries()
  const check = (expression: string, want: readonly string[]) =>
    assert.deepEqual(undeclared(expression, known), want)
  check('sum by (cpu) (rate(node_cpu_seconds_total{mode="idle"}[5m]))', [])
  check('node_memory_MemTotal_bytes + 1', [])
  check('rate(node_cpu_second_total[5m])', ['node_cpu_second_total is declared by no unit'])
  check('node_memory_MemTotl_bytes', ['node_memory_MemTotl_bytes is declared by no unit'])
  check('node_load1{device="a"}', ['node_load1 has no label device'])
  check('sum by (device) (node_load1)', ['nothing in it has the label device'])
  check('http_server_request_duration_seconds', [
    'http_server_request_duration_seconds is declared by no unit',
  ])
  check('label_replace(node_load1, "to", "$1", "from", "(.*)")', ['nothing in it has the label from'])
  check('a:b{le="1"} and on (x) up', ['a:b is declared by no unit', 'nothing in it has the label x'])
})

test('names are found in expressions of every form', () => {
  const check = (expression: string, want: object) => assert.deepEqual(askedBy(expression), want)
  check('up', { selectors: [{ metric: 'up', labels: [] }], labels: [], made: [] })
  check('rate(a_b{c="d{}\\"",e=~"f"}[5m:10s] offset 1h) > bool 1e3', {
    selectors: [{ metric: 'a_b', labels: ['c', 'e'] }],
    labels: [],
    made: [],
  })
  check('a / on (x, y) group_left (z) sum without (w) (b) unless c', {
    selectors: ['a', 'b', 'c'].map(metric => ({ metric, labels: [] })),
    labels: ['x', 'y', 'z', 'w'],
    made: [],
  })
  check('label_join(label_replace(a, "b", "$1", "c", "(.*)"), "d", "-", "e", "f")', {
    selectors: [{ metric: 'a', labels: [] }],
    labels: ['c', 'e', 'f'],
    made: ['b', 'd'],
  })
  assert.throws(() => askedBy('{__name__=~"a"}'), /without a name/)
})

test('a Prometheus takes every expression', { skip: withoutPrometheus }, async () => {
  const server = await startPrometheus({})
  try {
    for (const [place, expr] of expressions) {
      await server.query(expr).catch(error => assert.fail(`${place}: ${String(error)}`))
    }
    await assert.rejects(server.query('rate(up)'))
  } finally {
    await server.close()
  }
})

for (const [name, board] of boards) {
  const panels = panelsOf(board)

  test(`${name}: it is what Grafana imports anew and updates in place`, () => {
    assert.equal(board.uid, `svc-${name}`)
    assert.ok(!('id' in board))
    assert.deepEqual([board.timezone, board.refresh, board.schemaVersion], ['browser', '30s', 39])
    const ids = board.panels.flatMap(panel => [panel, ...(panel.panels ?? [])]).map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
    const titles = board.panels.filter(({ type }) => type === 'row').map(({ title }) => title)
    assert.equal(new Set(titles).size, titles.length)
  })

  test(`${name}: panels overlap nowhere, and lie in the row that they belong to`, () => {
    assert.deepEqual(overlaps(board.panels), [])
    for (const row of board.panels.filter(({ collapsed }) => collapsed)) {
      assert.deepEqual(overlaps(row.panels!), [])
      const next = board.panels[board.panels.indexOf(row) + 1]
      for (const { gridPos } of row.panels!) {
        assert.ok(gridPos.y > row.gridPos.y)
        assert.ok(next === undefined || gridPos.y < next.gridPos.y)
      }
    }
  })

  test(`${name}: every panel says what it shows, in which unit, and from where`, () => {
    for (const { title, description = '', fieldConfig, targets = [], datasource } of panels as (Panel & {
      datasource: { uid: string }
    })[]) {
      assert.ok(title !== '' && description.endsWith('.'), title)
      assert.ok(units.has(fieldConfig?.defaults.unit ?? ''), `${title}: ${fieldConfig?.defaults.unit}`)
      assert.ok(targets.length > 0, title)
      assert.match(datasource.uid, /^\$\{(datasource|profiles)\}$/)
      for (const { datasource: own } of targets) assert.equal(own.uid, datasource.uid)
      assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length)
    }
  })

  test(`${name}: every variable that it uses is defined, and every one is used`, () => {
    const text = JSON.stringify({
      ...board,
      templating: board.templating.list.map(({ definition, ...own }) => [definition, own]),
    })
    const defined = board.templating.list.map(each => each.name)
    const used = new Set([...text.matchAll(/\$\{?(\w+)\}?/g)].map(([, variable]) => variable!))
    for (const own of ['__rate_interval', '__range', '__all', '1']) used.delete(own)
    assert.deepEqual(
      [...used].filter(variable => !defined.includes(variable)),
      [],
    )
    assert.deepEqual(
      defined.filter(variable => !used.has(variable)),
      [],
    )
  })
}

test('a panel over another one is found', () => {
  const at = (id: number, x: number, y: number): Panel => ({
    id,
    type: 'stat',
    title: `${id}`,
    gridPos: { x, y, w: 6, h: 4 },
  })
  assert.deepEqual(overlaps([at(1, 0, 0), at(2, 6, 0), at(3, 0, 4)]), [])
  assert.deepEqual(overlaps([at(1, 0, 0), at(2, 5, 3)]), ['1 and 2'])
  assert.deepEqual(overlaps([at(1, 20, 0)]), ['1 and the edge'])
})

test('the page tells what each alert means and what to do, and of no other', () => {
  const page = readFileSync(new URL('../docs/grafana.md', import.meta.url), 'utf8')
  const alerts = rules.flatMap(({ alert, for: lasts, labels, annotations }) =>
    alert === undefined
      ? []
      : [{ alert, lasts: lasts!, severity: labels!.severity!, annotations: annotations! }],
  )
  const rows = [...page.matchAll(/^\| \[(\w+)\]\(#(\w+)\) +\| (\w+) +\| (\w+) +\|/gm)].map(
    ([, ...cells]) => cells,
  )
  assert.deepEqual(
    rows,
    alerts.map(({ alert, severity, lasts }) => [alert, alert.toLowerCase(), severity, lasts]),
  )
  const headings = [...page.slice(page.indexOf('\n## Alerts')).matchAll(/^### (\w+)$/gm)].map(
    ([, name]) => name,
  )
  assert.deepEqual(
    headings,
    alerts.map(({ alert }) => alert),
  )
  for (const { alert, annotations } of alerts) {
    assert.equal(annotations.runbook_url, `docs/grafana.md#${alert.toLowerCase()}`)
    assert.ok(annotations.summary && annotations.description!.endsWith('.'), alert)
  }
})

/** Units of Grafana that our panels have. */
const units = new Set([
  ...[
    'short',
    'percentunit',
    'bytes',
    's',
    'Bps',
    'bps',
    'KiBs',
    'pps',
    'ops',
    'iops',
    'reqps',
    'cps',
    'hertz',
    'celsius',
  ],
])

function overlaps(panels: readonly Panel[]): readonly string[] {
  const faults: string[] = []
  for (const [i, { id, gridPos: a }] of panels.entries()) {
    if (a.x < 0 || a.x + a.w > 24) faults.push(`${id} and the edge`)
    for (const { id: other, gridPos: b } of panels.slice(i + 1))
      if (a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
        faults.push(`${id} and ${other}`)
  }
  return faults
}
