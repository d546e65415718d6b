import type { Operation } from '../../../../foundation/model/stream.ts'
import { RequestsInFlight } from '../requests-in-flight.ts'
import { type SqlStatement, unknownStatement } from './statements.ts'

/** Requests in flight on one connection, at most. */
const mostRequests = 65_536
const noKinds = new Uint8Array(0)

/** The requests of one connection in the order of their answers, with what they are and their statements. */
export class SqlRequests extends RequestsInFlight {
  #kinds = noKinds
  #statements: SqlStatement[] = []
  #textBytes = 0

  constructor() {
    super(mostRequests)
  }

  override get bytes(): number {
    return super.bytes + this.#textBytes
  }

  /** What the first one is; 0: there is none. */
  get kind(): number {
    return this.kindAt(0)
  }

  get statement(): SqlStatement {
    return this.size === 0 ? unknownStatement : this.#statements[this.slotOf(0)]!
  }

  /** 0: there is none with so many before it. */
  kindAt(index: number): number {
    return index < this.size ? this.#kinds[this.slotOf(index)]! : 0
  }

  /** False: there are too many. `kind` is 1 to 255; `operation` undefined: no span is made of it. */
  add(kind: number, operation: Operation | undefined, statement: SqlStatement): boolean {
    if (!this.push(operation)) return false
    const slot = this.slotOf(this.size - 1)
    this.#kinds[slot] = kind
    this.#statements[slot] = statement
    this.#textBytes += statement.text.length
    return true
  }

  /** The first one stays, without its operation. */
  withdraw(): Operation | undefined {
    const { first } = this
    if (first !== undefined) this.slots[this.slotOf(0)] = undefined
    return first
  }

  /** Takes out the second one, which has no operation. */
  removeSecond(): void {
    const first = this.slotOf(0)
    const second = this.slotOf(1)
    const statement = this.#statements[second]!
    this.#kinds[second] = this.#kinds[first]!
    this.#statements[second] = this.#statements[first]!
    this.#statements[first] = statement
    this.slots[second] = this.slots[first]
    this.shift()
  }

  protected override vacate(slot: number): void {
    this.#textBytes -= this.#statements[slot]!.text.length
    this.#statements[slot] = unknownStatement
    super.vacate(slot)
  }

  protected override resize(length: number): void {
    const kinds = new Uint8Array(length)
    const statements = new Array<SqlStatement>(length).fill(unknownStatement)
    for (let i = 0; i < this.size; i++) {
      const slot = this.slotOf(i)
      kinds[i] = this.#kinds[slot]!
      statements[i] = this.#statements[slot]!
    }
    this.tally.bytes += (length - this.#kinds.length) * 9
    this.#kinds = kinds
    this.#statements = statements
    super.resize(length)
  }
}
