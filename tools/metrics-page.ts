// The reference page of the host metrics, from what the collectors declare.

import type { Family } from '../src/foundation/model/collector.ts'
import type { Keys } from '../src/foundation/schema/tree.ts'
import type { Collector } from '../src/signals/metrics/collectors/collector.ts'
import { collectors, extraCollectors } from '../src/signals/metrics/collectors/index.ts'
import { extendedRunFamilies, runFamilies } from '../src/signals/metrics/exposition/runs.ts'

const units: readonly Collector<Keys>[] = collectors
const more: readonly Collector<Keys>[] = extraCollectors

const intro = `# Host metrics

Generated from the collectors in \`src/signals/metrics/collectors\` by \`tools/gen-docs.ts\`; do not edit.

Metrics of \`svc node-exporter\` and of the agent's endpoint, by collector. All names have the prefix \`node\` unless
\`agent.nodeexporter.namespace\` sets another one. The last column is the name over OTLP, if the semantic
conventions (version 1.44) define one; all others keep their name. Usage: [replacing the node
exporter](../node-exporter.md).`

/** The page, in Markdown. */
export function metricsPage(): string {
  const own = [...runFamilies, ...extendedRunFamilies]
  return `${[
    intro,
    index(),
    ...units.map(unit => section(unit, unit.enabledByDefault ? 'On by default.' : 'Off by default.')),
    ...more.map(unit => section(unit, 'Only in the agent, with `ebpf_enhanced`.')),
    `## About the collectors\n\nThe first two in both, the others only in the agent.\n\n${table(own)}`,
  ].join('\n\n')}\n`
}

function index(): string {
  const names = (on: boolean) =>
    units
      .filter(({ enabledByDefault }) => enabledByDefault === on)
      .map(({ name }) => `[${name}](#${name})`)
      .join(', ')
  const others = more.map(({ name }) => `[${name}](#${name})`).join(', ')
  return `On by default: ${names(true)}.\n\nOff by default: ${names(false)}.\n\nOnly in the agent: ${others}.`
}

function section({ name, summary, dynamic, metrics }: Collector<Keys>, when: string): string {
  const parts = [`## ${name}`, `${summary}. ${when}`]
  if (dynamic !== undefined) parts.push(dynamic)
  if (metrics.length > 0) parts.push(table(metrics))
  return parts.join('\n\n')
}

function table(metrics: readonly Family[]): string {
  const rows = metrics.map(
    ({ name, type, labels, help, otel, absolute }) =>
      `| \`${absolute ? '' : 'node_'}${name}\` | ${type} | ${labels.join(', ')} | ${cell(help)} | ${otel ? `\`${otel.name}\`` : ''} |`,
  )
  return ['| metric | type | labels | meaning | over OTLP |', '|---|---|---|---|---|', ...rows].join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
