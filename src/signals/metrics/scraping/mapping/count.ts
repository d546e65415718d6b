/** Maximum exact count in a double. */
const mostCounted = 2 ** 53

/** Whether OTLP can represent a count: it is an exact integer. */
export function isCount(value: number): boolean {
  return value >= 0 && value <= mostCounted && Math.floor(value) === value
}
