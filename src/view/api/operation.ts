// Operations of the management API: the routes, the server, the description and the tests use the same table.

import type { IncomingHttpHeaders } from 'node:http'
import type { ApiPath } from '../../config/api-paths.ts'
import { nearest } from '../../foundation/lib/nearest.ts'
import { type Answer, failure } from './answer.ts'
import type { Schema } from './schema.ts'

/** An authorized request, with its body read and its parameters checked. */
export interface ApiRequest {
  readonly method: string
  /** The raw request target. */
  readonly url: string
  /** The client, as named by `clientOf`, for limits per client. */
  readonly client: string
  /** Without query. */
  readonly path: string
  /** The part after `?`. */
  readonly query: string
  readonly headers: IncomingHttpHeaders
  /** Every numeric parameter of the operation, given or default. */
  readonly parameters: Readonly<Record<string, number>>
  /** The same for text parameters. */
  readonly texts: Readonly<Record<string, string>>
  /** The body, if the operation accepts one; undefined otherwise. */
  readonly body?: Readonly<Record<string, unknown>> | undefined
  /** The client is unknown: confidential data is omitted. */
  readonly isPublic: boolean
  /** Aborts when the client has gone. */
  readonly signal: AbortSignal
}

/** A parameter of the query. */
export type Parameter = NumberParameter | TextParameter

/** A whole number. */
export interface NumberParameter {
  readonly name: string
  readonly description: string
  readonly minimum: number
  readonly maximum: number
  readonly fallback: number
}

export interface TextParameter {
  readonly name: string
  readonly description: string
  /** Accepted values; if absent, any text of at most 255 characters. */
  readonly values?: readonly string[]
  readonly fallback: string
}

/** Longest text parameter. */
export const mostTextLength = 255

/** An answer of an operation: its media types, and the shape of JSON documents. */
export interface Outcome {
  readonly description: string
  readonly content: Readonly<Record<string, Schema<unknown> | undefined>>
}

export interface Operation {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** `operationId` of the description. */
  readonly id: string
  readonly tag: 'probes' | 'telemetry' | 'status' | 'ui' | 'admin' | 'debug'
  readonly summary: string
  /**
   * Access: `open` for all, without a token; `public` for all, or with a token if one is required; `private` for
   * operations that change or reveal more: without a token, root and the agent's own user on this host, and browsers
   * with the key.
   */
  readonly access: 'open' | 'public' | 'private'
  /** A query with other names is rejected. Without parameters the query is ignored. */
  readonly parameters?: readonly Parameter[]
  /** Answers by status: success, and failures specific to this operation. */
  readonly outcomes: Readonly<Record<number, Outcome>>
  /** Schema of the body, a JSON object required for a POST; the operation itself validates it. */
  readonly body?: Schema<object>
  /** Exists only in debug mode. */
  readonly debug?: true
  /** Takes seconds or stops the process for a moment: HEAD does not run it. */
  readonly costly?: true
  /** A file of the page, omitted from the description. */
  readonly isFile?: true
  /** A POST means the same as a GET: its body is read and ignored. */
  readonly anyBody?: true
  handle(request: ApiRequest): Answer | Promise<Answer>
}

/** An operation of the management API. */
export interface ApiOperation extends Operation {
  readonly path: ApiPath
}

/** The served part of an operation: a server without a description needs no more. */
export type Route = Pick<Operation, 'method' | 'path' | 'access' | 'handle'> & Partial<Operation>

/** Path → method → operation. HEAD is answered by GET's. */
export type Routes = ReadonlyMap<string, Readonly<Partial<Record<'GET' | 'POST', Route>>>>

/** The operations by path; a duplicate path and method is a mistake in code or configuration. */
export function operationTable(operations: readonly Route[]): Routes {
  const table = new Map<string, Partial<Record<'GET' | 'POST', Route>>>()
  for (const operation of operations) {
    const methods = table.get(operation.path) ?? {}
    if (methods[operation.method])
      throw new Error(`cannot serve the metrics at ${operation.path}: another page uses that path`)
    methods[operation.method] = operation
    table.set(operation.path, methods)
  }
  return table
}

/** Methods that a path answers, for `Allow`. */
export function allowOf(methods: Readonly<Partial<Record<'GET' | 'POST', Route>>>): string {
  return [...(methods.GET ? ['GET', 'HEAD'] : []), ...(methods.POST ? ['POST'] : []), 'OPTIONS'].join(', ')
}

/** Reads the parameters of a query (without `?`), or answers with an error. */
export function readParameters(
  { path, parameters = [] }: Route,
  query: string,
): Pick<ApiRequest, 'parameters' | 'texts'> | Answer {
  const numbers: Record<string, number> = {}
  const texts: Record<string, string> = {}
  for (const { name, fallback } of parameters) {
    if (typeof fallback === 'number') numbers[name] = fallback
    else texts[name] = fallback
  }
  const seen = new Set<string>()
  const wrong = (parameter: string, why: string) =>
    failure(400, `cannot answer ${path}: ${why}`, { parameter })
  for (const [given, value] of new URLSearchParams(query)) {
    const name = given.slice(0, 64)
    const parameter = parameters.find(each => each.name === given)
    if (!parameter) {
      const names = parameters.map(each => each.name)
      const near = nearest(name, names)
      return wrong(
        name,
        `unknown parameter "${name}"; ${near ? `did you mean ${near}?` : `known parameters: ${names.join(', ')}`}`,
      )
    }
    if (seen.has(name)) return wrong(name, `"${name}" is given twice`)
    seen.add(name)
    if ('minimum' in parameter) {
      const { minimum, maximum } = parameter
      const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
      if (!(number >= minimum && number <= maximum))
        return wrong(name, `"${name}" must be a whole number from ${minimum} to ${maximum}`)
      numbers[name] = number
    } else {
      const { values } = parameter
      if (values?.includes(value) === false)
        return wrong(name, `"${name}" must be one of ${values.join(', ')}`)
      if (value.length > mostTextLength)
        return wrong(name, `"${name}" must have at most ${mostTextLength} characters`)
      texts[name] = value
    }
  }
  return { parameters: numbers, texts }
}
