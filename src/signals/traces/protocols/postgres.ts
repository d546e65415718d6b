import { Interner } from '../../../foundation/lib/interner.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { describeDatabase } from './database-call.ts'
import { PostgresStream } from './postgres/stream.ts'
import { SqlStatements } from './sql/statements.ts'

/**
 * The PostgreSQL protocol 3 (PostgreSQL 15, chapter 55), as seen by its clients, reported by the SQL conventions 1.44.
 * An operation is a simple Query, a function call or an Execute; a separate Parse is one only if it fails. `error.type`
 * and `db.response.status_code` are the SQLSTATE. The rest of a pipeline skipped after an error is not an operation.
 */
export const postgres: ProtocolUnit = {
  name: 'postgres',
  title: 'PostgreSQL',
  summary: 'PostgreSQL queries of clients: simple, extended, pipelined and COPY.',
  key: 'sql',
  confidence: 'message',
  counted: true,
  peerKind: 'store',
  create: () => new Postgres(),
}

class Postgres implements Protocol {
  readonly name = postgres.name
  readonly #statements = new SqlStatements()
  /** Names of prepared statements and portals, and SQLSTATEs. */
  readonly #words = small(new Interner({ slots: 4_096, maxLength: 64 }))

  fillCall({ connection, call }: Operation): boolean {
    const { peerAddress, peerPort } = connection
    describeDatabase(call, 'postgresql', peerAddress, peerPort)
    return true
  }

  open(connection: StreamConnection): StreamDecoder {
    return new PostgresStream(connection, this.#statements, this.#words)
  }
}
