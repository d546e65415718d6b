import type { Call } from '../../../../foundation/model/call.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { describeDatabase, describeDatabaseError } from '../database-call.ts'
import type { SqlStatement } from './statements.ts'

/**
 * Describes a call that runs a statement, by the conventions for SQL 1.44: `system` is `db.system.name`, `namespace`
 * the database, '' if unknown.
 */
export function describeSqlCall(
  call: Call,
  connection: StreamConnection,
  system: string,
  namespace: string,
  statement: SqlStatement,
): void {
  const { attributes } = call
  describeDatabase(call, system, connection.serverAddress, connection.serverPort)
  if (statement.summary !== '') call.name = statement.summary
  addBoth(call, 'db.namespace', namespace)
  addBoth(call, 'db.operation.name', statement.operation)
  addBoth(call, 'db.collection.name', statement.collection)
  addBoth(call, 'db.stored_procedure.name', statement.procedure)
  addBoth(call, 'db.query.summary', statement.summary)
  if (statement.text !== '') attributes.add('db.query.text', statement.text)
  if (statement.batch > 0) attributes.add('db.operation.batch.size', statement.batch)
}

/** The server returned an error: `code` is SQLSTATE or the server's own number. */
export function failSqlCall(call: Call, code: string): void {
  if (call.error !== '') return
  describeDatabaseError(call, code)
}

function addBoth(call: Call, key: string, value: string): void {
  if (value === '') return
  call.attributes.add(key, value)
  call.dimensions.add(key, value)
}
