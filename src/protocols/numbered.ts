import type { ByteFlow } from '../lib/byte-flow.ts'
import type { Operation, StreamConnection } from '../model/stream.ts'

/** Marks of operations; the lower bits are the protocol's. */
export const mark = {
  /** It has been told to the connection as asked. */
  asked: 1 << 30,
  /** It may have been answered while nobody looked. */
  unseen: 1 << 29,
  /** There may be no answer to it. */
  oneWay: 1 << 28,
  /** No span tells of it. */
  silent: 1 << 27,
} as const

/** Requests under way on one connection. */
const most = 1_024
/** Messages that cannot be, in a row, before a connection counts as another protocol's. */
const maxImpossible = 3
/** Pieces in which nothing is found before the peer's first answer: a connection may be joined in a long message. */
const maxStrange = 16
const maxStrangeJoined = 256

/** What a protocol does with requests whose answer was not seen. It ends, abandons or drops them. */
export interface NumberedOwner {
  /** Its answer, if there was one, has passed. */
  unseen(operation: Operation): void
  /** The connection ended before it was answered. */
  broken(operation: Operation): void
}

/** The requests of a connection whose answers say by a number what they answer. */
export class Numbered {
  readonly connection: StreamConnection
  /** The peer has answered in the same protocol. */
  confirmed = false
  /** It turned out to speak something else. */
  refused = false
  /** The request whose bytes are passing, as long as nobody has answered it. */
  sending: Operation | undefined
  /** The request whose answer's bytes are passing; it is among the others no more. */
  answering: Operation | undefined
  private readonly owner: NumberedOwner
  private readonly list: (Operation | undefined)[] = []
  /** Those before are gone. */
  private first = 0
  private strangers = 0
  private impossible = 0

  constructor(connection: StreamConnection, owner: NumberedOwner) {
    this.connection = connection
    this.owner = owner
  }

  get size(): number {
    return this.list.length - this.first
  }

  /** A request begins. Undefined: there is no room, which is counted. */
  begin(flow: ByteFlow, id: number, marks: number): Operation | undefined {
    const operation = this.refused ? undefined : this.connection.begin(flow)
    if (operation === undefined) return undefined
    operation.id = id
    operation.mark = marks
    if (this.size >= most) {
      if (!this.confirmed) {
        this.connection.release(operation)
        this.refuse()
        return undefined
      }
      this.abandon(this.remove(this.first))
    }
    this.push(operation)
    this.sending = operation
    return operation
  }

  /** The request is known. While nothing confirms the protocol, others are not told of it. */
  asked(operation: Operation): void {
    if ((operation.mark & (mark.asked | mark.silent)) !== 0 || !this.confirmed) return
    operation.mark |= mark.asked
    this.connection.asked(operation)
  }

  has(id: number): boolean {
    for (let i = this.first; i < this.list.length; i++) if (this.list[i]!.id === id) return true
    return false
  }

  /** An answer begins: takes the request out. Nothing is `answering` when nobody knows what it answers. */
  answered(flow: ByteFlow, id: number): void {
    this.answering = undefined
    for (let i = this.first; i < this.list.length; i++) {
      if (this.list[i]!.id !== id) continue
      this.confirmed = true
      this.impossible = 0
      this.strangers = 0
      const older = i - this.first
      const operation = this.remove(i)
      if (operation.responseNs === 0) operation.responseNs = flow.startNs
      this.answering = operation
      this.settle(mark.unseen | mark.oneWay, older)
      return
    }
    if (!this.confirmed && !this.connection.joined) this.suspect()
  }

  /** More answers to a request are to come, under another number. */
  again(operation: Operation, id: number): void {
    operation.id = id
    this.push(operation)
  }

  /** Takes a request out that nobody answers. */
  take(operation: Operation): void {
    const at = this.list.indexOf(operation, this.first)
    if (at >= 0) this.remove(at)
  }

  /** The answer is complete. Nobody may use the operation from now on. */
  end(operation: Operation): void {
    if ((operation.mark & mark.silent) !== 0) {
      this.connection.release(operation)
      return
    }
    this.asked(operation)
    if ((operation.mark & mark.asked) === 0) this.connection.release(operation)
    else this.connection.end(operation)
  }

  /** Answers may have passed unseen. */
  doubt(): void {
    for (let i = this.first; i < this.list.length; i++) this.list[i]!.mark |= mark.unseen
  }

  /** Lets go of those with one of the marks among the `count` oldest. */
  settle(marks: number, count = this.size): void {
    const end = this.first + count
    for (let i = this.first; i < end; i++)
      if ((this.list[i]!.mark & marks) !== 0) this.owner.unseen(this.remove(i))
  }

  /** Bytes were passed over; `inStep`: where a message had to begin. */
  strange(inStep: boolean): void {
    if (inStep) this.suspect()
    else if (!this.confirmed && ++this.strangers >= (this.connection.joined ? maxStrangeJoined : maxStrange))
      this.refuse()
  }

  close(): void {
    const { answering } = this
    this.answering = undefined
    if (answering !== undefined) this.giveUp(answering)
    while (this.size > 0) {
      const operation = this.remove(this.first)
      if ((operation.mark & mark.unseen) !== 0) this.owner.unseen(operation)
      else this.giveUp(operation)
    }
  }

  /** The connection speaks something else. */
  refuse(): void {
    if (this.refused) return
    this.refused = true
    if (this.answering !== undefined) this.drop(this.answering)
    this.answering = undefined
    while (this.size > 0) this.drop(this.remove(this.first))
    this.connection.refuse()
  }

  /** What became of it can no longer be told. */
  abandon(operation: Operation): void {
    if ((operation.mark & mark.silent) === 0) this.connection.abandon(operation)
    else this.connection.release(operation)
  }

  /** It was no request of this protocol, or of a kind that nothing is told of. */
  drop(operation: Operation): void {
    if ((operation.mark & mark.asked) !== 0) this.connection.abandon(operation)
    else this.connection.release(operation)
  }

  /** Its connection ended. */
  private giveUp(operation: Operation): void {
    if ((operation.mark & mark.silent) !== 0) this.connection.release(operation)
    else this.owner.broken(operation)
  }

  private suspect(): void {
    if (++this.impossible >= maxImpossible) this.refuse()
  }

  private push(operation: Operation): void {
    if (this.first >= 64) {
      this.list.copyWithin(0, this.first)
      this.list.length -= this.first
      this.first = 0
    }
    this.list.push(operation)
  }

  /** Most often the first one, as servers answer in order. Those before it move up. */
  private remove(at: number): Operation {
    const { list } = this
    const operation = list[at]!
    for (let i = at; i > this.first; i--) list[i] = list[i - 1]
    list[this.first] = undefined
    this.first++
    if (operation === this.sending) this.sending = undefined
    if (this.first === list.length) {
      list.length = 0
      this.first = 0
    }
    return operation
  }
}
