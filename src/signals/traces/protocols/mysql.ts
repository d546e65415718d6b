import { BoundedMap } from '../../../foundation/lib/bounded-map.ts'
import { Interner } from '../../../foundation/lib/interner.ts'
import { small } from '../../../foundation/lib/small-tables.ts'
import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import type { Operation, StreamConnection, StreamDecoder } from '../../../foundation/model/stream.ts'
import { describeDatabase } from './database-call.ts'
import { MysqlStream, type MysqlTexts } from './mysql/stream.ts'
import { type SqlStatement, SqlStatements, unknownStatement } from './sql/statements.ts'

/**
 * The client/server protocol of MySQL 8.4 and MariaDB 11, as seen by its clients, reported by the SQL conventions 1.44.
 * Operations are queries, prepared statements (their preparation as `PREPARE`, and each execution) and changes of the
 * database (`USE`). `error.type` and `db.response.status_code` are the server's error number.
 */
export const mysql: ProtocolUnit = {
  name: 'mysql',
  title: 'MySQL',
  summary: 'MySQL and MariaDB queries and prepared statements of clients.',
  key: 'sql',
  confidence: 'message',
  counted: true,
  peerKind: 'store',
  create: () => new Mysql(),
}

class Mysql implements Protocol, MysqlTexts {
  readonly name = mysql.name
  readonly statements: SqlStatements = new SqlStatements()
  /** Databases and error numbers. */
  readonly words: Interner = small(new Interner({ slots: 1_024, maxLength: 64 }))
  readonly #systems = small(new BoundedMap<string, string>(1_024))
  readonly #preparations = small(new BoundedMap<SqlStatement, SqlStatement>(1_024))
  readonly #uses = small(new BoundedMap<string, SqlStatement>(256))
  readonly #codes = small(new BoundedMap<number, string>(1_024))

  fillCall({ connection, call }: Operation): boolean {
    const { peerAddress, peerPort } = connection
    describeDatabase(call, this.systemOf(peerAddress, peerPort), peerAddress, peerPort)
    return true
  }

  open(connection: StreamConnection): StreamDecoder {
    return new MysqlStream(connection, this)
  }

  systemOf(address: string, port: number): string {
    return this.#systems.get(`${address} ${port}`) ?? mysql.name
  }

  learn(address: string, port: number, system: string): void {
    this.#systems.set(`${address} ${port}`, system)
  }

  preparationOf(statement: SqlStatement): SqlStatement {
    let preparation = this.#preparations.get(statement)
    if (preparation === undefined) {
      preparation = {
        ...statement,
        summary: `PREPARE ${statement.summary}`.trimEnd(),
        operation: 'PREPARE',
        database: '',
        batch: 0,
        holders: 0,
      }
      this.#preparations.set(statement, preparation)
    }
    return preparation
  }

  codeOf(code: number): string {
    let text = this.#codes.get(code)
    if (text === undefined) {
      text = String(code)
      this.#codes.set(code, text)
    }
    return text
  }

  useOf(database: string): SqlStatement {
    let use = this.#uses.get(database)
    if (use === undefined) {
      use = { ...unknownStatement, summary: `USE ${database}`, operation: 'USE', database, holders: 0 }
      this.#uses.set(database, use)
    }
    return use
  }
}
