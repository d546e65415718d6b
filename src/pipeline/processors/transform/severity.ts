/** Names of the severity numbers, four each (OpenTelemetry logs data model, "Displaying Severity"). */
const names: readonly string[] = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

/** Number of a severity such as `warn`, `ERROR2` or `17`; undefined if invalid. */
export function parseSeverity(text: string): number | undefined {
  const match = /^(?:([a-z]+)([2-4])?|(\d{1,2}))$/i.exec(text.trim())
  if (match === null) return undefined
  const [, name, step, digits] = match
  if (name === undefined) {
    const number = Number(digits)
    return number >= 1 && number <= 24 ? number : undefined
  }
  const at = names.indexOf(name.toUpperCase())
  return at < 0 ? undefined : at * 4 + Number(step ?? 1)
}

/** Short name of a severity number, such as `WARN` or `ERROR2`; '' for 0. */
export function severityName(number: number): string {
  const step = (number - 1) % 4
  return number === 0 ? '' : `${names[(number - 1 - step) / 4]!}${step === 0 ? '' : step + 1}`
}
