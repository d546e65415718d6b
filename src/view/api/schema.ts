// Shapes of documents: each is at once a JSON Schema (2020-12) and a TypeScript type.

/** A JSON Schema, as in the API's description. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A shape whose documents have the type T. */
export interface Schema<T> {
  readonly json: JsonSchema
  /** Name in the description; shapes without one are inlined. */
  readonly name?: string
  /** Nested shapes, for finding named ones. */
  readonly parts?: readonly Schema<unknown>[]
  /** The key may be absent. */
  readonly absent?: boolean
  /** Never present: carries the type. */
  readonly type?: T
}

/** The type of a shape's documents. */
export type Of<S> = S extends Schema<infer T> ? T : never

export interface OptionalSchema<T> extends Schema<T> {
  readonly absent: true
}

type Shape = Readonly<Record<string, Schema<unknown>>>
type Required<P extends Shape> = {
  [K in keyof P as P[K] extends OptionalSchema<unknown> ? never : K]: Of<P[K]>
}
type Optional<P extends Shape> = {
  [K in keyof P as P[K] extends OptionalSchema<unknown> ? K : never]?: Of<P[K]>
}
type ObjectOf<P extends Shape> = Readonly<Required<P> & Optional<P>>

export function text(description: string, more: JsonSchema = {}): Schema<string> {
  return { json: { type: 'string', description, ...more } }
}

/** A point in time: ISO 8601, UTC; null if it has not come yet. */
export function time(description: string): Schema<string | null> {
  return { json: { type: ['string', 'null'], format: 'date-time', description } }
}

/** A whole number, 0 or more. */
export function count(description: string): Schema<number> {
  return { json: { type: 'integer', minimum: 0, description } }
}

/** Any number. */
export function amount(description: string): Schema<number> {
  return { json: { type: 'number', description } }
}

export function flag(description: string): Schema<boolean> {
  return { json: { type: 'boolean', description } }
}

export function oneOf<const V extends string>(description: string, values: readonly V[]): Schema<V> {
  return { json: { type: 'string', enum: values, description } }
}

/** The same, or null. Only for inlined shapes. */
export function orNull<T>(schema: Schema<T>): Schema<T | null> {
  return { ...(schema as Schema<T | null>), json: { ...schema.json, type: [schema.json.type, 'null'] } }
}

/** One of several shapes, distinguished by `kind`. */
export function either<const S extends readonly Schema<unknown>[]>(
  description: string,
  ...shapes: S
): Schema<Of<S[number]>> {
  return { json: { description, oneOf: shapes.map(refer) }, parts: shapes }
}

/** A constant text. */
export function word<const V extends string>(value: V): Schema<V> {
  return { json: { const: value } }
}

export function anything(description: string): Schema<unknown> {
  return { json: { description } }
}

export function list<T>(description: string, items: Schema<T>): Schema<readonly T[]> {
  return { json: { type: 'array', description, items: refer(items) }, parts: [items] }
}

/** An object with arbitrary keys. */
export function record<T>(description: string, values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return { json: { type: 'object', description, additionalProperties: refer(values) }, parts: [values] }
}

export function object<const P extends Shape>(description: string, properties: P): Schema<ObjectOf<P>> {
  const entries = Object.entries(properties)
  return {
    json: {
      type: 'object',
      description,
      required: entries.filter(([, schema]) => !schema.absent).map(([name]) => name),
      properties: Object.fromEntries(entries.map(([name, schema]) => [name, refer(schema)])),
    },
    parts: entries.map(([, schema]) => schema),
  }
}

export function optional<T>(schema: Schema<T>): OptionalSchema<T> {
  return { ...schema, absent: true } as OptionalSchema<T>
}

export function named<T>(name: string, schema: Schema<T>): Schema<T> {
  return { ...schema, name }
}

/** The schema as a part of another: a reference by name if it has one. */
export function refer({ name, json }: Schema<unknown>): JsonSchema {
  return name === undefined ? json : { $ref: `#/components/schemas/${name}` }
}

/** All named shapes reachable from some, by name. */
export function namedShapes(roots: Iterable<Schema<unknown>>, found = new Map<string, JsonSchema>()) {
  for (const schema of roots) {
    if (schema.name !== undefined) {
      if (found.has(schema.name)) continue
      found.set(schema.name, schema.json)
    }
    namedShapes(schema.parts ?? [], found)
  }
  return found
}
