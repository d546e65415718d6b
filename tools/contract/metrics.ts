// Metrics: each promised one is declared with its type and labels, and each exported one is asserted in a test.
// (Whether metrics of a page have a value is checked when tests run: tools/testing/reached.ts.)
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sentMetrics } from '../declared-metrics.ts'
import { declaredSelfMetrics } from '../self-metrics-page.ts'
import { filesOf } from '../source-lines.ts'
import { hostFamilies } from './facts.ts'
import { service } from './spec.ts'

interface Declared {
  readonly type: string
  readonly labels: readonly string[]
}

export function metricFaults(root: string): string[] {
  const faults: string[] = []
  const own = new Map(
    declaredSelfMetrics().map(({ name, type, labelNames }) => [name, { type, labels: labelNames }]),
  )
  for (const [name, how] of Object.entries(service.metrics))
    compare(`svc_${name}`, how.replace('silent ', ''), own.get(`svc_${name}`), faults)
  for (const [name, how] of Object.entries(service.host_metrics)) {
    // Each field of /proc/meminfo and the like is a metric, which a test must reach anyway.
    const families = hostFamilies.filter(family => family.name === name)
    if (families.length > 0) compare(`node_${name}`, how, families[0], faults)
  }
  const asked = quotedInTests(root)
  for (const { name } of sentMetrics)
    if (!asked.has(name)) faults.push(`${name}: is declared, and no test asks for it`)
  return faults
}

function compare(name: string, how: string, declared: Declared | undefined, faults: string[]): void {
  const [type, ...labels] = how.split(' ')
  if (declared === undefined) faults.push(`${name}: promised, but not declared`)
  else if (declared.type !== type || declared.labels.toSorted().join() !== labels.toSorted().join())
    faults.push(`${name}: promised as ${how}, but is ${[declared.type, ...declared.labels].join(' ')}`)
}

/** Quoted texts in tests that receive exports, and in their helpers. */
function quotedInTests(root: string): ReadonlySet<string> {
  const files = filesOf(root).filter(file => /^(?:src|test\/e2e)\/.*\.test\.ts$|^test\/helpers\//.test(file))
  const text = files.map(file => readFileSync(join(root, file), 'utf8')).join('\n')
  // Keys of compared objects need no quotes.
  return new Set(
    Array.from(text.matchAll(/['"`]([\w.]+)['"`]|^\s*(\w+): /gm), ([, name, key]) => name ?? key!),
  )
}
