import type { Call } from '../../model/exchange.ts'
import { SpanKind } from '../../model/span.ts'
import type { StreamConnection } from '../../model/stream.ts'
import { dbClient } from '../durations.ts'
import type { SqlStatement } from './statements.ts'

/**
 * Tells a call that runs a statement, by the conventions for SQL 1.44: `system` is `db.system.name`, `namespace` the
 * database, '' where it is not known.
 */
export function describeSqlCall(
  call: Call,
  connection: StreamConnection,
  system: string,
  namespace: string,
  statement: SqlStatement,
): void {
  const { attributes } = call
  call.name = statement.summary === '' ? system : statement.summary
  call.kind = SpanKind.client
  call.signalType = 'sql'
  call.duration = dbClient
  addBoth(call, 'db.system.name', system)
  addBoth(call, 'db.namespace', namespace)
  addBoth(call, 'db.operation.name', statement.operation)
  addBoth(call, 'db.collection.name', statement.collection)
  addBoth(call, 'db.stored_procedure.name', statement.procedure)
  addBoth(call, 'db.query.summary', statement.summary)
  if (statement.text !== '') attributes.add('db.query.text', statement.text)
  if (statement.batch > 0) attributes.add('db.operation.batch.size', statement.batch)
  const { serverAddress, serverPort } = connection
  if (serverAddress === '') return
  addBoth(call, 'server.address', serverAddress)
  attributes.add('network.peer.address', serverAddress)
  if (serverPort === 0) return
  attributes.add('server.port', serverPort)
  call.dimensions.add('server.port', serverPort)
  attributes.add('network.peer.port', serverPort)
}

/** The server refused it: `code` is SQLSTATE or the server's own number. */
export function failSqlCall(call: Call, code: string): void {
  if (call.error !== '') return
  call.error = code
  addBoth(call, 'db.response.status_code', code)
  addBoth(call, 'error.type', code)
}

/** It broke off, with this `error.type`. */
export function breakSqlCall(call: Call, type: string): void {
  if (call.error !== '') return
  call.error = type
  addBoth(call, 'error.type', type)
}

function addBoth(call: Call, key: string, value: string): void {
  if (value === '') return
  call.attributes.add(key, value)
  call.dimensions.add(key, value)
}
