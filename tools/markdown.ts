// Shared by the generated pages.

/** A text as the cell of a table. */
export function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

/** A text as code in a table cell. */
export function code(text: string): string {
  return `\`${cell(text)}\``
}

/** A table; cells are not escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

/** A text with keys of the configuration marked as code. */
export function withKeys(text: string): string {
  return text.replace(/\b(agent|backoff|collectors|discovery|otlp|pipeline|queues)(\.\w+)+/g, code)
}

/** A text with its first letter as a capital. */
export function capital(text: string): string {
  return text.replace(/^[a-z](?=[a-z])/, letter => letter.toUpperCase())
}

/** The anchor of a heading in rendered Markdown (GitHub's rule). */
export function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')
}

/** An anchor for links from messages and pages. */
export function mark(kind: string, name: string): string {
  return `<a id="${kind}-${name}"></a>`
}
