import { Attributes, type AttributeValue } from './attributes.ts'

/** Who made the telemetry: one instance per observed entity, compared by identity. Its attributes never change. */
export interface Resource {
  readonly attributes: Attributes
}

/** The instrumentation scope: the part of svc that made the telemetry, or of an application that told it. */
export interface Scope {
  readonly name: string
  readonly version: string
  readonly attributes?: Attributes | undefined
  /** Of the conventions that its telemetry follows; without it those of this file. */
  readonly schemaUrl?: string | undefined
}

/** Semantic conventions that all names follow. */
export const schemaUrl = 'https://opentelemetry.io/schemas/1.44.0'

/** Makes a resource of plain attributes. */
export function resource(attributes: Readonly<Record<string, AttributeValue>>): Resource {
  return { attributes: Attributes.of(attributes) }
}
