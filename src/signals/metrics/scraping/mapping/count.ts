/** Above it a double tells no exact count. */
const mostCounted = 2 ** 53

/** Whether OTLP can tell a count: it is whole and exact. */
export function isCount(value: number): boolean {
  return value >= 0 && value <= mostCounted && Math.floor(value) === value
}
