// The reference page of the application protocols and of the ways to capture their bytes.
import type { Confidence } from '../src/foundation/model/protocol.ts'
import { backends } from '../src/signals/capture/index.ts'
import { protocols } from '../src/signals/traces/protocols/index.ts'
import { anchor, cell, code, table } from './markdown.ts'
import { reportedBy } from './spans-page.ts'

const meaning: Readonly<Record<Confidence, string>> = {
  preface: 'a unique preface',
  command: 'a command and its syntax',
  message: 'consistent length, type and contents',
  numbers: 'a few small numbers',
  port: 'its port, unless the bytes contradict it',
}

/** The page, in Markdown. */
export function protocolsPage(): string {
  const rows = protocols.map(({ name, title, summary, key, confidence }) => [
    `[${title}](spans.md#${anchor(title)})`,
    code(name),
    code(`agent.ebpf.network.${key}`),
    cell(summary),
    reportedBy(protocols.find(unit => unit.name === name)!).kinds.join(', '),
    confidence === undefined ? 'its request line' : meaning[confidence],
  ])
  return `# Protocols

Generated from \`src/signals/traces/protocols\` and \`src/signals/capture\` by \`tools/gen-docs.ts\`; do not edit.

Protocols that svc reads on the sockets of all processes. A protocol is recognised by its bytes. The key turns it on or
off; a change needs a restart. Spans, and the limits of capture: [traces](../tracing.md). Inside OpenSSL and GnuTLS the same
protocols are read: [TLS](../tls.md).

${table(['protocol', 'name', 'key', 'captured', 'spans', 'recognised by'], rows)}

## Capture back ends

\`agent.ebpf.backend\` selects one; \`auto\` uses the first one that works on this kernel. All pass the same bytes to
the same readers. Inside TLS the first one reads wherever it works, the second one on Linux 5.10 and newer. Features by kernel:
[kernels](../kernels.md).

${table(['back end', 'how', 'needs'], backendRows())}
`
}

function backendRows(): readonly string[][] {
  return backends.map(({ name, summary, needs }) => [
    code(name),
    cell(summary),
    needs.map(need => `[${need.name}](needs.md#${anchor(need.name)})`).join(', '),
  ])
}
