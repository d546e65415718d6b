import type { Attributes } from '../../foundation/model/attributes.ts'

/** Whether two sets are equal, in the same order. */
export function sameAttributes(a: Attributes, b: Attributes): boolean {
  if (a.size !== b.size) return false
  for (let i = 0; i < a.size; i++) {
    const [one, other] = [a.values[i]!, b.values[i]!]
    if (a.keys[i] !== b.keys[i]) return false
    if (one !== other && !(typeof one === 'object' && String(one) === String(other))) return false
  }
  return true
}
