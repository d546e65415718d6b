// Fields of foreign JSON. Of another type than expected means that it is not known.

export type JsonObject = Readonly<Record<string, unknown>>

const nothing: JsonObject = Object.freeze({})
const none: readonly unknown[] = Object.freeze([])

/** The object that it is; one without fields where it is none. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : nothing
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The text that it is; '' where it is none, or has more than `most` characters. */
export function textOf(value: unknown, most = 1024): string {
  return typeof value === 'string' && value.length <= most ? value : ''
}

/** The list that it is, `most` elements of it; an empty one where it is none. */
export function listOf(value: unknown, most = 256): readonly unknown[] {
  if (!Array.isArray(value)) return none
  return value.length > most ? value.slice(0, most) : value
}

/** The object in a text of JSON; undefined where it holds none. */
export function parseObject(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    // Whoever asked says what it means there.
    return undefined
  }
}
