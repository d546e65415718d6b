import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Reply } from './http.ts'

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly responses: Readonly<Record<string, DescribedResponse>> }
}

export interface DescribedOperation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly parameters?: readonly { readonly name: string; readonly schema: { readonly minimum: number } }[]
  readonly responses: Readonly<Record<string, DescribedResponse>>
}

interface DescribedResponse {
  readonly $ref?: string
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: object }>>
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>
}

/** `/openapi.json`, as a referee of answers. Documents may hold what it lists and nothing else. */
export class Api {
  readonly description: Description
  readonly #ajv: Ajv2020
  readonly #compiled = new Map<object, ValidateFunction>()

  constructor(description: unknown) {
    this.description = closed(description) as Description
    this.#ajv = new Ajv2020({ strict: false, allErrors: true })
    this.#ajv.addFormat('date-time', value => !Number.isNaN(Date.parse(value)) && value.endsWith('Z'))
    this.#ajv.addSchema(this.description as object, 'api')
  }

  /** Every operation that is described. */
  operations(): { path: string; method: string; operation: DescribedOperation }[] {
    return Object.entries(this.description.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path,
        method: method.toUpperCase(),
        operation,
      })),
    )
  }

  /** Holds an answer against what an operation may answer. */
  check(
    { responses, operationId }: DescribedOperation,
    { status, headers, body }: Reply,
    head = false,
  ): void {
    const what = `${operationId} ${status}: ${body.toString('utf8', 0, 400)}`
    const listed = responses[String(status)]
    assert.ok(listed, `${what}: the status is not described`)
    const response = listed.$ref
      ? this.description.components.responses[listed.$ref.split('/').at(-1)!]!
      : listed
    for (const [name, { required, schema }] of Object.entries(response.headers ?? {})) {
      const value = headers[name.toLowerCase()]
      assert.ok(value !== undefined || !required, `${what}: the header ${name} is missing`)
      const typed = (schema as { type?: string }).type === 'integer' ? Number(value) : value
      if (value !== undefined) this.#validate(schema, typed, `${what}: header ${name}`)
    }
    const type = headers['content-type'] ?? ''
    const described = response.content?.[type]
    assert.ok(described, `${what}: content type "${type}" is not described`)
    if (head) {
      assert.equal(body.length, 0, what)
      return
    }
    assert.equal(headers['content-length'], String(body.length), what)
    if (!described.schema) return
    const documents =
      type === 'application/x-ndjson' ? body.toString().split('\n').slice(0, -1) : [body.toString()]
    for (const document of documents) this.#validate(described.schema, JSON.parse(document), what)
  }

  #validate(schema: object, value: unknown, what: string): void {
    let validate = this.#compiled.get(schema)
    if (!validate) {
      validate = this.#ajv.compile(absolute(schema))
      this.#compiled.set(schema, validate)
    }
    assert.ok(validate(value), `${what}: ${this.#ajv.errorsText(validate.errors)}`)
  }
}

/** References that work from outside of the description. */
function absolute(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object
}

/** Objects whose keys are listed get no others, but for /config, of which the description lists a part. */
function closed(node: unknown, name = ''): unknown {
  if (Array.isArray(node)) return node.map(item => closed(item))
  if (typeof node !== 'object' || node === null || name === 'Config') return node
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value, key)]))
  return copy.type === 'object' && 'properties' in copy ? { ...copy, additionalProperties: false } : copy
}
