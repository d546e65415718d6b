import type { SqlStatement } from './statements.ts'

/** Maximum number of statements of one connection, and their maximum bytes together. */
const most = 1_024
const mostBytes = 262_144
/** Bytes of an entry, and of a statement without its texts (measured). */
const entryBytes = 120
const statementBytes = 150

/**
 * The statements that a connection may refer to again. The oldest ones are evicted if there are too many. A statement
 * shared by connections is counted for the first one, because the connections of a pool hold the same ones.
 */
export class HeldStatements<K extends string | number> {
  /** Bytes that it holds. */
  bytes = 0
  readonly #entries = new Map<K, { readonly statement: SqlStatement; readonly bytes: number }>()

  get(key: K): SqlStatement | undefined {
    return this.#entries.get(key)?.statement
  }

  set(key: K, statement: SqlStatement): void {
    this.delete(key)
    const isShared = statement.holders > 0
    const { text, summary } = statement
    const bytes =
      entryBytes +
      (typeof key === 'string' ? key.length : 0) +
      (isShared ? 0 : statementBytes + text.length + summary.length)
    statement.holders++
    this.bytes += bytes
    this.#entries.set(key, { statement, bytes })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= most && this.bytes <= mostBytes) return
      this.delete(oldest)
    }
  }

  delete(key: K): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.bytes -= entry.bytes
    entry.statement.holders--
  }

  clear(): void {
    for (const key of this.#entries.keys()) this.delete(key)
  }
}
