import type { Operation } from '../../../../foundation/model/stream.ts'
import { RequestsInFlight } from '../requests-in-flight.ts'
import { type SqlStatement, unknownStatement } from './statements.ts'

/** Maximum number of requests in flight on one connection. */
const mostRequests = 65_536
const noKinds = new Uint8Array(0)

/** The requests of one connection in the order of their responses, with their kinds and statements. */
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

  /** Kind of the first request; 0 if there is none. */
  get kind(): number {
    return this.kindAt(0)
  }

  get statement(): SqlStatement {
    return this.size === 0 ? unknownStatement : this.#statements[this.slotOf(0)]!
  }

  /** 0 if there are not that many. */
  kindAt(index: number): number {
    return index < this.size ? this.#kinds[this.slotOf(index)]! : 0
  }

  /** False if there are too many. `kind` is 1 to 255; `operation` is undefined for a request without a span. */
  add(kind: number, operation: Operation | undefined, statement: SqlStatement): boolean {
    if (!this.push(operation)) return false
    const slot = this.slotOf(this.size - 1)
    this.#kinds[slot] = kind
    this.#statements[slot] = statement
    this.#textBytes += statement.text.length
    return true
  }

  /** Removes the operation of the first request, which stays. */
  withdraw(): Operation | undefined {
    const { first } = this
    if (first !== undefined) this.slots[this.slotOf(0)] = undefined
    return first
  }

  /** Removes the second request, which has no operation. */
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
