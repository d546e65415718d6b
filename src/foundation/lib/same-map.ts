/** Whether two maps have the same entries. */
export function isSameMap(some: ReadonlyMap<string, string>, others: ReadonlyMap<string, string>): boolean {
  if (some.size !== others.size) return false
  for (const [key, value] of some) if (others.get(key) !== value) return false
  return true
}
