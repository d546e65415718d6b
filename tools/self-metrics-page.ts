// The reference page of the agent's metrics about itself, from the registry that serves them.

import { dropReasons } from '../src/foundation/model/drop-reasons.ts'
import { signalTypes } from '../src/foundation/model/signal-types.ts'
import { Events } from '../src/program/agent/subsystem.ts'
import { subsystems } from '../src/program/subsystems/index.ts'
import { declareMetrics } from '../src/program/subsystems/running.ts'
import { cell, code, table } from './markdown.ts'

const namespace = 'svc'

/** Every family, without values: nothing is read before a page is written. */
export function declaredSelfMetrics() {
  const { registry } = declareMetrics(subsystems, namespace, new Events(), () => undefined as never)
  return registry.declared.map(({ desc }) => desc)
}

/** The page, in Markdown. */
export function selfMetricsPage(): string {
  const rows = declaredSelfMetrics().map(({ name, type, labelNames, help }) => [
    code(name),
    type,
    labelNames.join(', '),
    cell(help),
  ])
  const reasons = Object.entries(dropReasons).map(([reason, { means, intended }]) => [
    code(reason),
    `${cell(means)}${intended ? ' (no loss: as configured)' : ''}`,
  ])
  const types = signalTypes.map(({ type, signals, means }) => [
    code(type),
    signals.map(signal => (signal === 'traces' ? 'spans' : signal)).join(', '),
    cell(means),
  ])
  return `# Metrics about svc itself

Generated from the subsystems in \`src/program/subsystems\` by \`tools/gen-docs.ts\`; do not edit.

At \`/metrics\` of the management API (\`self_telemetry.path\`), in the Prometheus text format or as OpenMetrics, as the
client requests. \`${namespace}\` is \`self_telemetry.prometheus_namespace\`. Host metrics have [their own page](metrics.md).

At every moment, for each signal: collected + recovered = exported + rejected + dropped + queued.

${table(['metric', 'type', 'labels', 'meaning'], rows)}

## Signal types

The label \`signal_type\` of \`${namespace}_*_collected_total\`. Elsewhere it is the signal: \`traces\`, \`metrics\`, \`logs\`
or \`profiles\`.

${table(['signal_type', 'of', 'meaning'], types)}

## Drop reasons

The label \`reason\` of \`${namespace}_*_dropped_total\`. If a receiver rejects data permanently, the reason is the status of the receiver,
such as \`invalid_argument\` or \`http_400\`. Fixes for each reason:
[missing data at the receiver](../troubleshooting.md#missing-data-at-the-receiver).

${table(['reason', 'meaning'], reasons)}
`
}
