// The reference page of the application protocols and of the ways in which their bytes are seen.
import type { Sign } from '../src/model/protocol.ts'
import { backends } from '../src/probes/index.ts'
import { protocols } from '../src/protocols/index.ts'
import { anchor, cell, code, table } from './markdown.ts'
import { toldBy } from './spans-page.ts'

const meaning: Readonly<Record<Sign, string>> = {
  preface: 'a text that nothing else begins with',
  command: 'a word and its syntax',
  message: 'length, type and contents that fit each other',
  numbers: 'a few small numbers',
  port: 'its port, where the bytes do not contradict',
}

/** The page, in Markdown. */
export function protocolsPage(): string {
  const rows = protocols.map(({ name, title, summary, key, sign }) => [
    `[${title}](spans.md#${anchor(title)})`,
    code(name),
    code(`agent.ebpf.network.${key}`),
    cell(summary),
    toldBy(protocols.find(unit => unit.name === name)!).kinds.join(', '),
    sign === undefined ? 'its request line' : meaning[sign],
  ])
  return `# Protocols

Generated from \`src/protocols\` and \`src/probes\` by \`tools/gen-docs.ts\`; do not edit.

What svc reads on the sockets of all processes. A protocol is recognised by its bytes; the key switches it, and a change
takes a restart. What a span is, and what is not seen: [traces](../tracing.md). Inside OpenSSL and GnuTLS the same
protocols are read: [TLS](../tls.md).

${table(['protocol', 'name', 'key', 'what is seen', 'spans', 'recognised by'], rows)}

## Capture back ends

\`agent.ebpf.backend\` chooses one; \`auto\` takes the first of them that this kernel lets work. All hand the same bytes to
the same readers. Inside TLS the first reads wherever it works, the second on Linux 5.10 and newer. Which kernel gives what:
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
