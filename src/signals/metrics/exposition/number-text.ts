/**
 * A number in the format of the replaced exporter: the shortest digits that round-trip, with an exponent of at least
 * two digits below 1e-4 and from 1e6 on (Go's strconv.FormatFloat, format 'g', precision -1).
 */
export function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  const size = value < 0 ? -value : value
  if (size === 0) return '0'
  // JavaScript writes the same shortest digits, and plain ones from 1e-7 to 1e21.
  if (size >= 1e-4 && size < 1e6) return String(value)
  if (size === Number.POSITIVE_INFINITY) return value < 0 ? '-Inf' : '+Inf'
  const text = value.toExponential()
  const at = text.indexOf('e') + 2
  return text.length - at < 2 ? `${text.slice(0, at)}0${text.slice(at)}` : text
}
