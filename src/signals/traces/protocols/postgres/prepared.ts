import type { Interner } from '../../../../foundation/lib/interner.ts'
import { HeldStatements } from '../sql/held-statements.ts'
import { type SqlStatement, unknownStatement } from '../sql/statements.ts'
import { textEnd } from './messages.ts'

/** The prepared statements and portals of one connection, as far as their text is known. */
export class Prepared {
  readonly #words: Interner
  #statements: HeldStatements<string> | undefined
  #portals: HeldStatements<string> | undefined
  /** The unnamed ones. */
  #statement = unknownStatement
  #portal = unknownStatement

  constructor(words: Interner) {
    this.#words = words
  }

  /** Bytes that it holds. */
  get bytes(): number {
    return (this.#statements?.bytes ?? 0) + (this.#portals?.bytes ?? 0)
  }

  /** The connection is over. */
  clear(): void {
    this.#statements?.clear()
    this.#portals?.clear()
  }

  /** Requests were missed: the unnamed ones may have been replaced. */
  forgetUnnamed(): void {
    this.#statement = unknownStatement
    this.#portal = unknownStatement
  }

  /** Parse: `bytes[start, end)` is the name. */
  parse(bytes: Buffer, start: number, end: number, statement: SqlStatement): void {
    if (end === start) {
      this.#statement = statement
      return
    }
    this.#statements ??= new HeldStatements()
    this.#statements.set(this.#words.intern(bytes, start, end), statement)
  }

  /** Bind: the names of a portal and of a statement. */
  bind(bytes: Buffer, start: number, end: number): void {
    const portalEnd = textEnd(bytes, start, end)
    const name = Math.min(end, portalEnd + 1)
    const statement = this.#statementOf(bytes, name, textEnd(bytes, name, end))
    if (portalEnd === start) {
      this.#portal = statement
      return
    }
    this.#portals ??= new HeldStatements()
    this.#portals.set(this.#words.intern(bytes, start, portalEnd), statement)
  }

  /** Execute: the statement that the portal was bound to. */
  execute(bytes: Buffer, start: number, end: number): SqlStatement {
    const nameEnd = textEnd(bytes, start, end)
    if (nameEnd === start) return this.#portal
    return this.#portals?.get(this.#words.intern(bytes, start, nameEnd)) ?? unknownStatement
  }

  /** Close: `S` or `P` and a name. */
  close(bytes: Buffer, start: number, end: number): void {
    const nameEnd = textEnd(bytes, start + 1, end)
    if (nameEnd <= start + 1) return
    const name = this.#words.intern(bytes, start + 1, nameEnd)
    if (bytes[start] === 0x53) this.#statements?.delete(name)
    else this.#portals?.delete(name)
  }

  #statementOf(bytes: Buffer, start: number, end: number): SqlStatement {
    if (end === start) return this.#statement
    return this.#statements?.get(this.#words.intern(bytes, start, end)) ?? unknownStatement
  }
}
