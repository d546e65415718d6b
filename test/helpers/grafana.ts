// The dashboards and rules of deploy/grafana as they lie there, and all that they ask for.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { declaredSeries, dynamicCollectors } from '../../tools/declared-metrics.ts'
import { hostTree, readWith } from './collector.ts'
import { askedBy } from './promql.ts'

/** Files of /proc of a kernel of today (6.18), whole. */
const kernelTree = join(import.meta.dirname, '../fixtures/grafana')
const folder = join(import.meta.dirname, '../../deploy/grafana')

export interface Target {
  readonly refId: string
  readonly datasource: { readonly type: string; readonly uid: string }
  readonly expr?: string
  readonly legendFormat?: string
}

export interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly Target[]
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly collapsed?: boolean
  readonly panels?: readonly Panel[]
}

export interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly schemaVersion: number
  readonly timezone: string
  readonly refresh: string
  readonly panels: readonly Panel[]
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly definition?: string }[]
  }
}

export interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly for?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

export const dashboardNames = ['host', 'services', 'profiles', 'agent'] as const
export const recordingFile = join(folder, 'recording.yaml')
export const alertFile = join(folder, 'alerts.yaml')

export function dashboard(name: (typeof dashboardNames)[number]): Dashboard {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as Dashboard
}

export function rulesOf(file: string): readonly Rule[] {
  const { groups } = parse(readFileSync(file, 'utf8')) as { groups: readonly { rules: readonly Rule[] }[] }
  return groups.flatMap(({ rules }) => rules)
}

/** Rows left out, and those that are folded opened. */
export function panelsOf({ panels }: Dashboard): readonly Panel[] {
  return panels.flatMap(panel => (panel.type === 'row' ? (panel.panels ?? []) : [panel]))
}

/** What Grafana puts for its own variables, and for those of our dashboards unless said otherwise. */
const usual: Readonly<Record<string, string>> = {
  __rate_interval: '1m',
  __range: '1h',
  label: 'service_name',
  service: '.*',
  job: '.*',
  instance: '.*',
  node: 'host:9100',
  nodename: 'host',
}

export function filledIn(expression: string, values: Readonly<Record<string, string>> = {}): string {
  return expression.replaceAll(/\$(\w+)/g, (whole, name: string) => values[name] ?? usual[name] ?? whole)
}

/** Labels that every series has, by its target or its resource. */
const always = ['job', 'instance', 'service_name']

/** Series that may be asked for, with their labels: those that units declare, and those that dynamic ones read here. */
export async function knownSeries(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const known = new Map(declaredSeries())
  for (const unit of dynamicCollectors) {
    const trees = await Promise.all([hostTree, kernelTree].map(tree => readWith(unit, {}, tree)))
    for (const line of trees.flatMap(({ lines }) => lines)) {
      const [, name, labels = ''] = /^([\w:]+)(?:\{(.*)\})? /.exec(line) ?? []
      if (name === undefined || line.startsWith('#')) continue
      const names = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label!)
      known.set(name, new Set([...(known.get(name) ?? []), ...names]))
    }
  }
  for (const { record, expr, labels = {} } of rulesOf(recordingFile)) {
    const asked = askedBy(expr)
    known.set(record!, new Set([...(known.get(record!) ?? []), ...asked.labels, ...Object.keys(labels)]))
  }
  return known
}

/** What an expression asks for that nothing declares: empty where all is well. */
export function undeclared(
  expression: string,
  known: ReadonlyMap<string, ReadonlySet<string>>,
): readonly string[] {
  const { selectors, labels, made } = askedBy(expression)
  const faults: string[] = []
  const there = new Set([...always, ...made])
  for (const { metric, labels: matched } of selectors) {
    const own = known.get(metric)
    if (own === undefined) faults.push(`${metric} is declared by no unit`)
    for (const label of own ?? []) there.add(label)
    for (const label of matched)
      if (own !== undefined && !own.has(label) && !always.includes(label))
        faults.push(`${metric} has no label ${label}`)
  }
  for (const label of labels) if (!there.has(label)) faults.push(`nothing in it has the label ${label}`)
  return faults
}
