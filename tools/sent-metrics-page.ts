// The reference page of the metrics exported over OTLP besides those of the host, from the declarations of the units.
import { sentMetrics } from './declared-metrics.ts'
import { cell, code, table } from './markdown.ts'
import { prometheusName } from './prometheus-name.ts'

/** The page, in Markdown. */
export function sentMetricsPage(): string {
  const rows = sentMetrics.map(metric => {
    const { name, description, unit, kind, attributes } = metric
    const own = [...new Set(attributes)].map(code).join(', ')
    return [code(name), code(prometheusName(metric)), kind, code(unit), cell(description), own]
  })
  return `# Metrics over OTLP

Generated from the declarations of the units in \`src\` by \`tools/gen-docs.ts\`; do not edit.

Requests, connections, flows, processes, system calls, service graph and GPUs. Each belongs to the resource of its process,
container or host ([attributes](spans.md#resource)). The second column is the name in a Prometheus that receives
OTLP; histograms add \`_bucket\`, \`_sum\` and \`_count\`. Separate pages list [host metrics](metrics.md) and
[metrics about svc itself](self-metrics.md). Request histograms count every call, including those whose span was dropped by
sampling or by the budget. Usage: [traces](../tracing.md), [network](../network.md), [GPUs](../gpu.md).

${table(['metric', 'in Prometheus', 'type', 'unit', 'meaning', 'attributes'], rows)}
`
}
