// The reference page of the configuration, from its schema.

import { schema, variableOf } from '../src/config/index.ts'
import { ExitCode } from '../src/foundation/lib/start-error.ts'
import { defaultOf } from '../src/foundation/schema/collections.ts'
import { type Branch, isBranch, type Key } from '../src/foundation/schema/tree.ts'
import { cell } from './markdown.ts'

const intro = `# Configuration

Generated from the schema in \`src/config\` by \`tools/gen-docs.ts\`; do not edit.

The configuration is one YAML file: \`--config FILE\`, else \`$SVC_CONFIG_FILE\`, else \`./config.yaml\`, else
\`/etc/svc/config.yaml\`. No file is needed; the defaults are below. An unknown key at any level, a wrong type
or a value out of range stops the start with exit code ${ExitCode.usage}; \`svc validate\` shows all problems at once.

- **Precedence**: flags, then \`SVC_*\` variables, the file, the standard \`OTEL_*\` variables, the defaults.
- **Variables**: every key has a variable, \`SVC_\` and the path in capitals with \`_\` for \`.\`: \`agent.ebpf.debug\` is
  \`${variableOf('agent.ebpf.debug')}\`. Lists use YAML flow style (\`[80, 443]\`) or commas (\`80,443\`), maps \`{a: b}\` or \`a=b,c=d\`.
- **References** in the file: \`\${VAR}\` (an error when unset), \`\${VAR:-default}\`, \`\${VAR:?message}\`, \`\${file:/path}\` for a
  secret, \`$\${\` for a literal. They are replaced only within values, and only once. Quote them in flow style.
- **Durations**: \`500ms\`, \`30s\`, \`5m\`, \`1h30m\`. **Sizes**: \`32Mi\` (1024s), \`500MB\` (1000s), or plain bytes.
- **Switches**: for a group of keys with \`enabled\`, a plain \`true\` or \`false\` sets \`enabled\`.
- **Other spellings**: the keys of the first table can also be under \`svc:\`; \`self_telemetry\` can be \`selfTelemetry\`;
  \`agent.nodeexporter.collectors.thermal\` is an alias of \`thermal_zone\`.
- **Aliases**: \`pipeline.export.otlp.*\` overrides \`otlp.*\` and \`pipeline.operations.shutdown.timeout\` overrides
  \`shutdown_timeout\` when both come from the same source; \`queues.<signal>.batch_size\` overrides
  \`pipeline.export.batch.size\`, and \`otlp.<signal>.*\` overrides \`otlp.*\`. A scheme in an endpoint overrides \`insecure\`.
- **Standard variables**: \`OTEL_EXPORTER_OTLP_{ENDPOINT,PROTOCOL,COMPRESSION,HEADERS,TIMEOUT,INSECURE,CERTIFICATE,
  CLIENT_CERTIFICATE,CLIENT_KEY}\` and their forms for one signal (\`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT\`),
  \`OTEL_SERVICE_NAME\`, \`OTEL_RESOURCE_ATTRIBUTES\`, \`OTEL_SDK_DISABLED\`. Invalid ones are ignored with a warning.

Marks: **secret** is never shown; **restart** takes effect after a restart of the agent; **not built** is accepted,
but has no effect in this version, and \`svc doctor\` reports it. Editors can use [config.schema.json](config.schema.json).
`

/** The page, in Markdown. */
export function configurationPage(): string {
  const sections: string[] = [intro]
  section(schema, '', sections, true)
  return `${sections.join('\n')}`
}

function section(root: Branch, path: string, sections: string[], built: boolean): void {
  const rows: string[] = []
  for (const [name, node] of Object.entries(root.keys)) {
    if (!isBranch(node)) rows.push(row(path === '' ? name : `${path}.${name}`, node, built))
  }
  if (path !== '') sections.push(`## ${path}\n\n${root.description}${built ? '' : ' *Not built.*'}\n`)
  if (rows.length > 0)
    sections.push(`| key | type | default | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`)
  for (const [name, node] of Object.entries(root.keys)) {
    if (isBranch(node)) {
      section(node, path === '' ? name : `${path}.${name}`, sections, built && node.built !== false)
    }
  }
}

function row(path: string, leaf: Key<unknown>, built: boolean): string {
  const marks = [
    leaf.secret ? 'secret' : '',
    leaf.restart ? 'restart' : '',
    built && leaf.built === false ? 'not built' : '',
  ]
  const shown = marks.filter(mark => mark !== '').map(mark => ` **${mark}**`)
  const unbuilt = unbuiltChoices(leaf)
  if (unbuilt.length > 0) shown.push(` **not built**: ${unbuilt.map(each => `\`${each}\``).join(', ')}`)
  const fallback = defaultOf(leaf)
  const text = typeof fallback === 'string' && fallback !== '' ? fallback : JSON.stringify(fallback)
  return `| \`${path}\` | ${cell(leaf.kind.expects)} | ${cell(`\`${text}\``)} | ${cell(leaf.description)}${shown.join('')} |`
}

/** Its choices without effect in this version. */
function unbuiltChoices({ kind }: Key<unknown>): readonly string[] {
  const choices = (kind.json.enum ?? []) as readonly string[]
  return choices.filter(each => kind.missing?.(each) !== undefined)
}
