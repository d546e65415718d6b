// Fields of foreign JSON. A value of an unexpected type counts as unknown.

export type JsonObject = Readonly<Record<string, unknown>>

const nothing: JsonObject = Object.freeze({})
const none: readonly unknown[] = Object.freeze([])

/** The value if it is an object, otherwise an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : nothing
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value if it is a text of at most `most` characters, otherwise ''. */
export function textOf(value: unknown, most = 1024): string {
  return typeof value === 'string' && value.length <= most ? value : ''
}

/** The first `most` elements if the value is a list, otherwise an empty list. */
export function listOf(value: unknown, most = 256): readonly unknown[] {
  if (!Array.isArray(value)) return none
  return value.length > most ? value.slice(0, most) : value
}

/** Parses a JSON object; undefined if the text is not one. */
export function parseObject(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    // The caller decides what that means.
    return undefined
  }
}
