// The reference page of the metrics that are sent over OTLP beside those of the host, from what the units declare.
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

Generated from what the units in \`src\` declare by \`tools/gen-docs.ts\`; do not edit.

Requests, connections, flows, processes, system calls, service graph and GPUs. Each belongs to the resource of its process,
container or host ([attributes](spans.md#resource)). The second column is the name that a Prometheus gives it that takes
OTLP; of histograms \`_bucket\`, \`_sum\` and \`_count\` follow. Those of the host have [a page of their own](metrics.md), and so
has what svc says [about itself](self-metrics.md). Histograms of requests count every call, those too whose span was sampled
away or was above the budget. What they are good for: [traces](../tracing.md), [network](../network.md), [GPUs](../gpu.md).

${table(['metric', 'in Prometheus', 'type', 'unit', 'what it is', 'attributes'], rows)}
`
}
