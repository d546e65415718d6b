// Writes the generated reference pages. With --check writes nothing and exits 1 naming the files that are stale.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { jsonSchema, schema, variableOf } from '../src/config/index.ts'
import { defaultOf } from '../src/schema/collections.ts'
import { type Branch, isBranch, type Key } from '../src/schema/tree.ts'
import { apiPage } from './api-page.ts'
import { metricsPage } from './metrics-page.ts'
import { needsPage } from './needs-page.ts'

interface Generator {
  readonly file: string
  readonly text: () => string
}

const generators: readonly Generator[] = [
  { file: 'docs/reference/configuration.md', text: configurationPage },
  { file: 'docs/reference/api.md', text: apiPage },
  { file: 'docs/reference/needs.md', text: needsPage },
  { file: 'docs/reference/metrics.md', text: metricsPage },
  { file: 'docs/reference/config.schema.json', text: () => `${JSON.stringify(jsonSchema(), null, 1)}\n` },
]

const intro = `# Configuration

Generated from the schema in \`src/config\` by \`tools/gen-docs.ts\`; do not edit.

The configuration is one YAML file: \`--config FILE\`, else \`$SVC_CONFIG_FILE\`, else \`./config.yaml\`, else
\`/etc/svc/config.yaml\`. Without a file the defaults below make a useful agent. An unknown key at any level, a wrong type
or a value out of range refuses the start with exit code 2; \`svc validate\` shows all problems at once.

- **Precedence**: flags, then \`SVC_*\` variables, the file, the standard \`OTEL_*\` variables, the defaults.
- **Variables**: every key has one, \`SVC_\` and the path in capitals with \`_\` for \`.\`: \`agent.ebpf.debug\` is
  \`${variableOf('agent.ebpf.debug')}\`. Lists take YAML flow (\`[80, 443]\`) or commas (\`80,443\`), maps \`{a: b}\` or \`a=b,c=d\`.
- **References** in the file: \`\${VAR}\` (an error when unset), \`\${VAR:-default}\`, \`\${VAR:?message}\`, \`\${file:/path}\` for a
  secret, \`$\${\` for a literal. They are replaced within values only, and never looked at again. Quote them in flow style.
- **Durations**: \`500ms\`, \`30s\`, \`5m\`, \`1h30m\`. **Sizes**: \`32Mi\` (1024s), \`500MB\` (1000s), or plain bytes.
- **Switches**: where a key takes keys with \`enabled\`, a bare \`true\` or \`false\` is short for it.
- **Other spellings**: the keys of the first table may stand under \`svc:\`; \`self_telemetry\` may be \`selfTelemetry\`;
  \`agent.nodeexporter.collectors.thermal\` is \`thermal_zone\`.
- **Two keys for one thing**: \`pipeline.export.otlp.*\` wins over \`otlp.*\` and \`pipeline.operations.shutdown.timeout\` over
  \`shutdown_timeout\` when both come from the same source; \`queues.<signal>.batch_size\` wins over
  \`pipeline.export.batch.size\`, and \`otlp.<signal>.*\` over \`otlp.*\`. A scheme in an endpoint wins over \`insecure\`.
- **Standard variables**: \`OTEL_EXPORTER_OTLP_{ENDPOINT,PROTOCOL,COMPRESSION,HEADERS,TIMEOUT,INSECURE,CERTIFICATE,
  CLIENT_CERTIFICATE,CLIENT_KEY}\` and their forms for one signal (\`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT\`),
  \`OTEL_SERVICE_NAME\`, \`OTEL_RESOURCE_ATTRIBUTES\`, \`OTEL_SDK_DISABLED\`. One that makes no sense is ignored with a warning.

Marks: **secret** is never shown; **restart** takes effect when the agent is started again; **not built** is accepted,
and \`svc doctor\` says that this version does nothing with it. Editors can use [config.schema.json](config.schema.json).
`

function configurationPage(): string {
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
  const fallback = defaultOf(leaf)
  const text = typeof fallback === 'string' && fallback !== '' ? fallback : JSON.stringify(fallback)
  return `| \`${path}\` | ${cell(leaf.kind.expects)} | ${cell(`\`${text}\``)} | ${cell(leaf.description)}${shown.join('')} |`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

function current(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined // not written yet
  }
}

const root = join(import.meta.dirname, '..')
const stale = generators.filter(({ file, text }) => current(join(root, file)) !== text())
if (process.argv.includes('--check')) {
  for (const { file } of stale) console.error(`${file} is stale: run tools/gen-docs.ts`)
  process.exitCode = stale.length > 0 ? 1 : 0
} else {
  for (const { file, text } of stale) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text())
  }
}
