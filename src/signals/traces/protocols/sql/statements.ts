import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import { Interner } from '../../../../foundation/lib/interner.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import { utf8Text } from '../../../../foundation/lib/utf8-text.ts'
import type { SqlDialect } from './dialect.ts'
import { SqlLexer, Token } from './lexer.ts'
import { maxTextBytes, SanitisedText } from './sanitised-text.ts'
import { maxSummaryBytes, SqlSummary, type TargetKind } from './summary.ts'

/** Attributes of a statement: texts of the database conventions 1.44, '' if there is none. Immutable. */
export interface SqlStatement {
  /** `db.query.text`: without literals. */
  readonly text: string
  /** `db.query.summary`. */
  readonly summary: string
  /** `db.operation.name`, if there is one operation. */
  readonly operation: string
  /** `db.collection.name`, if the operation has one target. */
  readonly collection: string
  /** `db.stored_procedure.name`. */
  readonly procedure: string
  /** The database of a `USE`. */
  readonly database: string
  /** `db.operation.batch.size`: number of statements in the text if there are several; otherwise 0. */
  readonly batch: number
  /** Number of connections that hold it for reuse. */
  holders: number
}

/** A statement of which nothing is known. */
export const unknownStatement: SqlStatement = {
  text: '',
  summary: '',
  operation: '',
  collection: '',
  procedure: '',
  database: '',
  batch: 0,
  holders: 0,
}

/** Maximum bytes of a statement that are read. */
export const maxStatementBytes = 8192

const batchWord = 'BATCH '

/** A statement and the bytes of its summary as Latin-1, which distinguish texts that were cut to the same prefix. */
interface Known {
  readonly summary: string
  readonly statement: SqlStatement
}

/**
 * Parses statements. Those that differ only in their literals are one object, so they produce no garbage; if there are
 * too many, the least used ones are evicted.
 */
export class SqlStatements {
  readonly #lexer = new SqlLexer()
  readonly #text = new SanitisedText()
  readonly #one = new SqlSummary()
  readonly #first = new Single()
  readonly #texts: Interner
  readonly #known: BoundedMap<string, Known>
  /** The summaries of the text's statements, separated by `; `; equal neighbours are merged. */
  readonly #summary = Buffer.alloc(maxSummaryBytes)
  #length = 0
  #lastFrom = 0
  #batch = 0
  #alike = true

  constructor(capacity = 2_048) {
    this.#texts = small(new Interner({ slots: capacity, maxLength: maxTextBytes }))
    this.#known = small(new BoundedMap(capacity))
  }

  /** Parses `bytes[start, end)`, the beginning of a longer statement unless `whole`. */
  read(bytes: Buffer, start: number, end: number, whole: boolean, dialect: SqlDialect): SqlStatement {
    const lexer = this.#lexer
    const text = this.#text
    const one = this.#one
    lexer.reset(bytes, start, end, whole, dialect)
    text.clear()
    one.clear()
    this.#length = 0
    this.#lastFrom = 0
    this.#batch = 0
    this.#alike = true
    for (let token = lexer.next(); token !== Token.end; token = lexer.next()) {
      text.add(token, lexer)
      if (token === Token.semicolon) this.#take()
      else one.add(token, lexer)
    }
    this.#take()
    return this.#find()
  }

  /** One statement of the text ended. */
  #take(): void {
    const one = this.#one
    if (one.operations > 0) {
      this.#batch++
      if (this.#batch === 1) this.#first.take(one)
      if (this.#batch === 1 || !this.#repeats()) this.#append()
    }
    one.clear()
  }

  #repeats(): boolean {
    const one = this.#one
    return one.bytes.compare(this.#summary, this.#lastFrom, this.#length, 0, one.length) === 0
  }

  #append(): void {
    const one = this.#one
    const summary = this.#summary
    const from = this.#batch === 1 ? 0 : this.#length + 2
    if (this.#batch > 1) this.#alike = false
    if (from + one.length > maxSummaryBytes) return
    if (from > 0) summary.write('; ', this.#length, 'latin1')
    this.#lastFrom = from
    this.#length = from + one.bytes.copy(summary, from, 0, one.length)
  }

  #find(): SqlStatement {
    const text = this.#texts.intern(this.#text.bytes, 0, this.#text.length)
    const found = this.#known.get(text)
    if (found !== undefined && this.#matches(found)) return found.statement
    const statement = this.#make()
    this.#known.set(text, { summary: this.#summary.toString('latin1', 0, this.#length), statement })
    return statement
  }

  #matches({ summary, statement }: Known): boolean {
    if (summary.length !== this.#length || statement.batch !== (this.#batch > 1 ? this.#batch : 0))
      return false
    for (let i = 0; i < this.#length; i++) if (summary.charCodeAt(i) !== this.#summary[i]) return false
    return true
  }

  #make(): SqlStatement {
    const first = this.#first
    const alike = this.#alike
    const batch = this.#batch
    const prefix = batch > 1 && alike ? batchWord : ''
    const summary = `${prefix}${utf8Text(this.#summary, 0, this.#length)}`
    const operation = alike && first.operations === 1 && batch > 0 ? this.#part(first.operation) : ''
    const target = operation === '' || first.targets !== 1 ? '' : unquoted(this.#part(first.target))
    const { targetKind } = first
    return {
      text: utf8Text(this.#text.bytes, 0, this.#text.length),
      summary: summary.length > maxSummaryBytes ? batchWord.trimEnd() : summary,
      operation: operation === '' ? '' : `${prefix}${operation}`,
      collection: targetKind === 'collection' ? target : '',
      procedure: targetKind === 'procedure' ? target : '',
      database: first.uses && batch === 1 ? target : '',
      batch: batch > 1 ? batch : 0,
      holders: 0,
    }
  }

  #part({ start, end }: ByteRange): string {
    return utf8Text(this.#summary, start, Math.min(end, this.#length))
  }
}

/** The first statement of a text. Its ranges are those of the summary. */
class Single {
  operations = 0
  targets = 0
  targetKind: TargetKind = 'none'
  uses = false
  readonly operation = new ByteRange()
  readonly target = new ByteRange()

  take(one: SqlSummary): void {
    this.operations = one.operations
    this.targets = one.targets
    this.targetKind = one.targetKind
    this.uses = one.uses
    this.operation.set(one.operation.start, one.operation.end)
    this.target.set(one.target.start, one.target.end)
  }
}

/** A name without its quotes. */
function unquoted(name: string): string {
  return name.replaceAll('"', '').replaceAll('`', '')
}
