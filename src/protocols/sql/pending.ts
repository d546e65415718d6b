import type { Operation } from '../../model/stream.ts'
import { type SqlStatement, unknownStatement } from './statements.ts'

/** Requests whose answers are awaited on one connection, at most. */
export const maxPending = 65_536
/** Room that is kept when none is. */
const kept = 64
/** Bytes of a slot. */
const slotBytes = 17

/** The requests of one connection in the order of their answers. */
export class PendingRequests {
  size = 0
  /** Bytes of the statements' texts. */
  private textBytes = 0
  private head = 0
  private kinds = new Uint8Array(0)
  private operations: (Operation | undefined)[] = []
  private statements: SqlStatement[] = []

  /** Bytes that they hold. */
  get bytes(): number {
    return this.kinds.length * slotBytes + this.textBytes
  }

  /** What the first one is; 0: there is none. */
  get kind(): number {
    return this.size === 0 ? 0 : this.kinds[this.head]!
  }

  /** Undefined where no operation tells of the first one. */
  get operation(): Operation | undefined {
    return this.size === 0 ? undefined : this.operations[this.head]
  }

  get statement(): SqlStatement {
    return this.size === 0 ? unknownStatement : this.statements[this.head]!
  }

  /** Kind of the one behind the first. */
  get nextKind(): number {
    return this.size < 2 ? 0 : this.kinds[(this.head + 1) & (this.kinds.length - 1)]!
  }

  /** False: there are too many. `kind` is 1 to 255. */
  push(kind: number, operation: Operation | undefined, statement: SqlStatement): boolean {
    if (this.size === maxPending) return false
    if (this.size === this.kinds.length) this.grow()
    const slot = (this.head + this.size) & (this.kinds.length - 1)
    this.kinds[slot] = kind
    this.operations[slot] = operation
    this.statements[slot] = statement
    this.textBytes += statement.text.length
    this.size++
    return true
  }

  /** The first one stays, without its operation. */
  withdraw(): Operation | undefined {
    const { operation } = this
    if (operation !== undefined) this.operations[this.head] = undefined
    return operation
  }

  /** Takes out the first one. */
  shift(): void {
    this.textBytes -= this.statements[this.head]!.text.length
    this.operations[this.head] = undefined
    this.statements[this.head] = unknownStatement
    this.head = (this.head + 1) & (this.kinds.length - 1)
    this.size--
    if (this.size > 0 || this.kinds.length <= kept) return
    this.head = 0
    this.kinds = new Uint8Array(0)
    this.operations = []
    this.statements = []
  }

  /** Takes out the one behind the first, which no operation tells of. */
  dropNext(): void {
    const next = (this.head + 1) & (this.kinds.length - 1)
    this.textBytes -= this.statements[next]!.text.length - this.statements[this.head]!.text.length
    this.kinds[next] = this.kinds[this.head]!
    this.operations[next] = this.operations[this.head]
    this.statements[next] = this.statements[this.head]!
    this.shift()
  }

  private grow(): void {
    const { size, head } = this
    const length = Math.max(4, 2 * size)
    const kinds = new Uint8Array(length)
    const operations = new Array<Operation | undefined>(length).fill(undefined)
    const statements = new Array<SqlStatement>(length).fill(unknownStatement)
    for (let i = 0; i < size; i++) {
      const slot = (head + i) & (size - 1)
      kinds[i] = this.kinds[slot]!
      operations[i] = this.operations[slot]
      statements[i] = this.statements[slot]!
    }
    this.kinds = kinds
    this.operations = operations
    this.statements = statements
    this.head = 0
  }
}
