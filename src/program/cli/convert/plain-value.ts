import type { Scalar, Value } from '../../../foundation/schema/value.ts'

/** Converts a scalar to a plain value; `path` has the names that lead to it, `[]` for a list. */
export type ScalarForm = (scalar: Scalar, path: readonly string[]) => unknown

/** The input as plain lists, maps and scalars. */
export function plainOf(
  value: Value,
  form: ScalarForm = ({ value }) => value,
  path: readonly string[] = [],
): unknown {
  if (value.type === 'scalar') return form(value, path)
  if (value.type === 'list') return value.items.map(item => plainOf(item, form, [...path, '[]']))
  return Object.fromEntries(
    value.entries.map(({ key, value: each }) => [key, plainOf(each, form, [...path, key])]),
  )
}
