// The reference page of spans: the attributes of each protocol, from the sources that set them.
import type { ProtocolUnit } from '../src/foundation/model/protocol.ts'
import * as durations from '../src/signals/traces/protocols/durations.ts'
import { protocols } from '../src/signals/traces/protocols/index.ts'
import { code, table } from './markdown.ts'
import { attributesOf, imports, reachable, sourcesOf, wordsOf } from './source-words.ts'

const area = 'src/signals/traces/protocols/'

/** Shared attributes that some protocols do not use. */
const unused: Readonly<Record<string, readonly string[]>> = {
  memcached: ['db.namespace', 'db.query.text'],
  mongodb: ['db.query.text'],
  kafka: ['messaging.destination.anonymous', 'messaging.destination.template'],
  mqtt: ['messaging.destination.anonymous'],
}

export interface ReportedSpan {
  /** Attributes of the span. */
  readonly attributes: readonly string[]
  readonly kinds: readonly string[]
  /** Histograms that count its calls. */
  readonly metrics: readonly durations.ProtocolDuration[]
}

/** What a protocol reports about a call. */
export function reportedBy({ name }: ProtocolUnit): ReportedSpan {
  const files = reachable(`${area}${name}.ts`, area)
  const metrics = Object.entries(durations).flatMap(([exported, value]) =>
    isDuration(value) && imports(files, exported, '/durations.ts') ? [value] : [],
  )
  return {
    attributes: attributesOf(files).filter(key => !unused[name]?.includes(key)),
    kinds: wordsOf(files, 'SpanKind'),
    metrics,
  }
}

/** The page, in Markdown. */
export function spansPage(): string {
  return `${[intro, ...protocols.map(section), resources()].join('\n\n')}\n`
}

const intro = `# Spans

Generated from \`src/signals/traces/protocols\` and \`src/identity/entities\` by \`tools/gen-docs.ts\`; do not edit.

All attributes of spans, by protocol, and all attributes of their resources. Names are those of the semantic
conventions 1.44; attributes that are unknown for a call are omitted. Spans, their names, and data that is never
recorded: [traces](../tracing.md). List of protocols: [protocols](protocols.md).`

function section(unit: ProtocolUnit): string {
  const { attributes, kinds, metrics } = reportedBy(unit)
  return `## ${unit.title}

Span kind: ${kinds.join(', ')}. Metrics: ${metrics.map(({ name }) => `[${code(name)}](sent-metrics.md)`).join(', ')}.

${attributes.map(code).join(', ')}`
}

function resources(): string {
  const files = [
    ...sourcesOf('src/identity/entities'),
    ...sourcesOf('src/identity/discovery'),
    'src/program/agent/host-resource.ts',
  ]
  const groups = new Map<string, string[]>()
  for (const key of attributesOf(files)) {
    const group = key.slice(0, key.indexOf('.'))
    groups.set(group, [...(groups.get(group) ?? []), key])
  }
  return `## Resource

The owner of a span; metrics, logs and profiles of processes have the same resource. Service names:
[discovery](../discovery.md). The owners of a pod are \`k8s.KIND.name\` and \`k8s.KIND.uid\`, such as \`k8s.deployment.name\`.
Attributes from \`resource.attributes\` of the configuration, from \`OTEL_RESOURCE_ATTRIBUTES\` of the process as far as
\`agent.discovery.process_attributes\` allows, and from labels listed in \`agent.discovery\` are added.

${table(
  ['of the', 'attributes'],
  [...groups].map(([group, keys]) => [group, keys.map(code).join(', ')]),
)}`
}

function isDuration(value: unknown): value is durations.ProtocolDuration {
  return typeof value === 'object' && value !== null && 'dimensions' in value
}
