// Labels and help in the Prometheus and OpenMetrics formats.

/** `{name="value",…}`; '' without names. A missing value is empty. */
export function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  let text = ''
  for (let i = 0; i < names.length; i++)
    text += `${i === 0 ? '{' : ','}${names[i]}="${escapedQuoted(values[i] ?? '')}"`
  return `${text}}`
}

/** Escapes a help text. Quotes are literal in Prometheus' text format, but escaped in OpenMetrics. */
export function escapedHelp(help: string, openMetrics = false): string {
  return openMetrics ? escapedQuoted(help) : help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapedQuoted(value: string): string {
  return /[\\\n"]/.test(value) ? escapedHelp(value).replaceAll('"', '\\"') : value
}
