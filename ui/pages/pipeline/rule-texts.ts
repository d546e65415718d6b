// Texts of rules: examples, and their place in the configuration file.

export interface Example {
  readonly name: string
  readonly rules: string
}

export const examples: readonly Example[] = [
  {
    name: 'Drop health checks',
    rules: `transform:
  enabled: true
  rules:
    - name: health-checks
      match:
        span_names: ["/health|ready|live/"]
      actions:
        - type: drop
`,
  },
  {
    name: 'Rename an attribute',
    rules: `transform:
  enabled: true
  rules:
    - name: tenant
      match: {}
      actions:
        - type: rename_attribute
          rename_attribute: {from: http.route, to: shop.route}
`,
  },
  {
    name: 'Redact order numbers',
    rules: `pii_redaction:
  enabled: true
  scan_span_names: true
  rules:
    - name: order
      type: regex
      pattern: "order-[0-9]+"
`,
  },
]

/** The rules as in a file, below `pipeline:`. */
export function asFile(rules: string): string {
  const text = rules.trimEnd()
  if (/^pipeline:/m.test(text)) return `${text}\n`
  const lines = text.split('\n').map(line => (line.trim() === '' ? '' : `  ${line}`))
  return `pipeline:\n${lines.join('\n')}\n`
}

/** A line of a text (from 1) in three parts, of which the middle one is marked. */
export function partsOfLine(
  text: string,
  { line, column, length }: { readonly line: number; readonly column: number; readonly length: number },
): readonly [before: string, meant: string, after: string] | undefined {
  const whole = text.split('\n')[line - 1]
  if (line === 0 || whole === undefined) return undefined
  const from = Math.max(0, column - 1)
  const to = from + Math.max(1, length)
  return [whole.slice(0, from), whole.slice(from, to), whole.slice(to)]
}
