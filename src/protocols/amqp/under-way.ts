import type { Operation } from '../../model/stream.ts'

/** Slots that are kept when nothing waits: a connection may have thousands of channels. */
const kept = 256

/** What the tables of a connection hold. */
export class Tally {
  bytes = 0
}

/** What stands for a tag whose operation is not known. */
const hole = undefined

/**
 * Messages of a channel that wait for an acknowledgement, by their delivery tags, which count up by one (AMQP 0-9-1,
 * section 1.8.3.13). A ring that grows up to its bound.
 */
export class UnderWay {
  /** How many operations it holds. */
  size = 0
  private slots: (Operation | undefined)[] = []
  private first = 0
  private length = 0
  private base = 1
  private readonly most: number
  private readonly tally: Tally

  /** `most`: a power of two. */
  constructor(most: number, tally = new Tally()) {
    this.most = most
    this.tally = tally
  }

  /** Counts its slots no more. */
  clear(): void {
    this.tally.bytes -= this.slots.length * 8
    this.slots = []
  }

  /** Takes out one that has to make room for that of `tag`. To be asked until there is none. */
  crowdedOut(tag: number): Operation | undefined {
    return this.takeUpTo(tag - this.most)
  }

  /** Adds that of a tag, for which there is room. False where the tag is no later one than all before. */
  add(tag: number, operation: Operation): boolean {
    if (this.length === 0) this.base = tag
    const distance = tag - this.base
    if (distance < this.length || distance >= this.most) return false
    while (this.length <= distance) this.push(hole)
    this.slots[this.slotOf(distance)] = operation
    this.size++
    return true
  }

  /** Takes out that of a tag. */
  take(tag: number): Operation | undefined {
    const distance = tag - this.base
    if (distance < 0 || distance >= this.length) return undefined
    const slot = this.slotOf(distance)
    const operation = this.slots[slot]
    this.slots[slot] = hole
    if (operation !== undefined) this.size--
    while (this.length > 0 && this.slots[this.first] === hole) this.drop()
    return operation
  }

  /** Takes out the oldest of those whose tag is not above `tag`. */
  takeUpTo(tag: number): Operation | undefined {
    while (this.length > 0 && this.base <= tag) {
      const operation = this.shift()
      if (operation !== undefined) return operation
    }
    return undefined
  }

  /** The first of the oldest `count` for which `test` holds. */
  find(count: number, test: (operation: Operation) => boolean): Operation | undefined {
    for (let i = 0; i < Math.min(count, this.length); i++) {
      const operation = this.slots[this.slotOf(i)]
      if (operation !== undefined && test(operation)) return operation
    }
    return undefined
  }

  private shift(): Operation | undefined {
    const operation = this.slots[this.first]
    if (operation !== undefined) this.size--
    this.drop()
    return operation
  }

  private drop(): void {
    this.slots[this.first] = hole
    this.first = (this.first + 1) & (this.slots.length - 1)
    this.length--
    this.base++
    if (this.length > 0) return
    this.first = 0
    if (this.slots.length > kept) this.clear()
  }

  private push(operation: Operation | undefined): void {
    if (this.length === this.slots.length) this.grow()
    this.slots[this.slotOf(this.length)] = operation
    this.length++
  }

  private grow(): void {
    const slots = new Array<Operation | undefined>(Math.max(16, 2 * this.slots.length)).fill(hole)
    for (let i = 0; i < this.length; i++) slots[i] = this.slots[this.slotOf(i)]
    this.tally.bytes += (slots.length - this.slots.length) * 8
    this.slots = slots
    this.first = 0
  }

  private slotOf(distance: number): number {
    return (this.first + distance) & (this.slots.length - 1)
  }
}
