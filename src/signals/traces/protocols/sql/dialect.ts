/** Meaning of a backslash in a quoted literal; `unknown` if the session's setting was not seen. */
export type Backslash = 'escape' | 'plain' | 'unknown'

/** Differences between SQL dialects that matter to a lexer. */
export interface SqlDialect {
  readonly backslash: Backslash
  /** `"text"` is a literal, `` `name` `` an identifier, and `#` begins a comment. */
  readonly mysql: boolean
}

function dialects(mysql: boolean): Readonly<Record<Backslash, SqlDialect>> {
  return {
    escape: { backslash: 'escape', mysql },
    plain: { backslash: 'plain', mysql },
    unknown: { backslash: 'unknown', mysql },
  }
}

/** PostgreSQL 15, section 4.1; by its `standard_conforming_strings`. */
export const postgresqlDialects: Readonly<Record<Backslash, SqlDialect>> = dialects(false)

/** MySQL 8.4, section 11.1; by its NO_BACKSLASH_ESCAPES. */
export const mysqlDialects: Readonly<Record<Backslash, SqlDialect>> = dialects(true)
