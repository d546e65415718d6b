// Labels and help as the formats of Prometheus and of OpenMetrics write them.

/** `{name="value",…}`; '' without names. A value that is missing is empty. */
export function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  let text = ''
  for (let i = 0; i < names.length; i++)
    text += `${i === 0 ? '{' : ','}${names[i]}="${escapedQuoted(values[i] ?? '')}"`
  return `${text}}`
}

/** A help text. Of Prometheus' text format it may hold quotes as they are, of OpenMetrics it may not. */
export function escapedHelp(help: string, openMetrics = false): string {
  return openMetrics ? escapedQuoted(help) : help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapedQuoted(value: string): string {
  return /[\\\n"]/.test(value) ? escapedHelp(value).replaceAll('"', '\\"') : value
}
