import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { namedShapes, refer, type Schema } from '../../src/view/api/schema.ts'

const compiled = new WeakMap<Schema<unknown>, ValidateFunction>()

/** Holds a document against its shape; it may have what is listed there and nothing else. */
export function checkShape<T>(shape: Schema<T>, document: T): void {
  const validate = compiled.get(shape) ?? compile(shape)
  compiled.set(shape, validate)
  assert.ok(validate(document), JSON.stringify(validate.errors?.slice(0, 3)))
}

function compile(shape: Schema<unknown>): ValidateFunction {
  const schemas = Object.fromEntries(namedShapes([shape]))
  return new Ajv2020({ strict: false, allErrors: true }).compile(
    closed({ ...refer(shape), components: { schemas } }) as object,
  )
}

function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]))
  return copy.type === 'object' && 'properties' in copy ? { ...copy, additionalProperties: false } : copy
}
