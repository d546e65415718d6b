// The machine-readable description of the management API (OpenAPI 3.1), generated from the operations that serve it.

import { build } from '../../foundation/lib/build.ts'
import { mostTextLength, type Operation, type Outcome, type Parameter } from './operation.ts'
import { type JsonSchema, namedShapes, refer, type Schema } from './schema.ts'
import { errorDocument } from './schemas.ts'

/** Failures of all operations, besides their own: status → description and header. */
const failures: Readonly<Record<number, readonly [description: string, header?: string]>> = {
  400: ['The request is malformed.'],
  401: [
    'Authentication required: a valid bearer token, or, without one, to be root or the user of svc on this host.',
    'WWW-Authenticate',
  ],
  403: ['The host name of the request is unknown, or the request comes from a web page of another origin.'],
  404: ['Path not found, or only available in debug mode.'],
  405: ['The path does not support the method.', 'Allow'],
  408: ['The request was too slow.'],
  413: ['The body is too large.'],
  414: ['The URL is too long.'],
  415: ['The body is not JSON.'],
  417: ['The expectation cannot be met.'],
  429: ['Too many requests from this client.', 'Retry-After'],
  431: ['The headers are too large.'],
  500: ['Internal error; details are in the agent’s log.'],
  503: ['Too many expensive requests in progress, or a negative answer.'],
}

const headers: Readonly<Record<string, JsonSchema>> = {
  'WWW-Authenticate': { description: 'RFC 6750.', required: true, schema: { const: 'Bearer' } },
  Allow: { description: 'Supported methods.', required: true, schema: { type: 'string' } },
  'Retry-After': {
    description: 'Seconds to wait.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
}

const always = {
  'Cache-Control': { description: 'Answers are not cached.', required: true, schema: { const: 'no-store' } },
}

/** The description of some operations. */
export function openapi(operations: readonly Operation[]): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of operations) {
    if (operation.isFile) continue
    paths[operation.path] ??= {}
    paths[operation.path]![operation.method.toLowerCase()] = describe(operation)
  }
  const shapes = operations.flatMap(({ outcomes, body }) => [
    ...(body === undefined ? [] : [body]),
    ...Object.values(outcomes).flatMap(({ content }) =>
      Object.values(content).filter((schema): schema is Schema<unknown> => schema !== undefined),
    ),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc management API',
      version: build().version,
      summary:
        'Health, readiness, metrics, status, configuration, debugging and administration of one agent.',
      description:
        'HEAD answers as GET, without a body. OPTIONS lists the methods of a path. Paths with the tag `debug` exist in debug mode (`self_telemetry.debug`). Future breaking changes come under `/api/v1/`.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{}, { bearer: [] }],
    tags: ['probes', 'telemetry', 'status', 'ui', 'admin', 'debug'].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: Object.fromEntries(namedShapes([errorDocument, ...shapes])),
      responses: Object.fromEntries(
        Object.entries(failures).map(([status, [description, header]]) => [
          `Failure${status}`,
          {
            description,
            headers: { ...always, ...(header === undefined ? {} : { [header]: headers[header]! }) },
            content: { 'application/json': { schema: refer(errorDocument) } },
          },
        ]),
      ),
    },
  }
}

function describe({ id, tag, summary, access, parameters, body, outcomes }: Operation): JsonSchema {
  const responses: Record<string, JsonSchema> = {}
  for (const status of Object.keys(failures))
    responses[status] = { $ref: `#/components/responses/Failure${status}` }
  for (const [status, outcome] of Object.entries(outcomes)) responses[status] = response(outcome)
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(access === 'open' ? { security: [{}] } : {}),
    ...(parameters === undefined ? {} : { parameters: parameters.map(parameter) }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: refer(body) } } } }),
    responses,
  }
}

function response({ description, content }: Outcome): JsonSchema {
  return {
    description,
    headers: always,
    content: Object.fromEntries(
      Object.entries(content).map(([type, schema]) => [type, schema ? { schema: refer(schema) } : {}]),
    ),
  }
}

function parameter(parameter: Parameter): JsonSchema {
  const { name, description, fallback } = parameter
  if ('minimum' in parameter) {
    const { minimum, maximum } = parameter
    return {
      name,
      in: 'query',
      description,
      schema: { type: 'integer', minimum, maximum, default: fallback },
    }
  }
  const { values } = parameter
  const bound = values === undefined ? { maxLength: mostTextLength } : { enum: values }
  return { name, in: 'query', description, schema: { type: 'string', ...bound, default: fallback } }
}
