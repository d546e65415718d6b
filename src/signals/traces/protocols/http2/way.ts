import { HpackDecoder } from '../../../../foundation/lib/hpack.ts'
import type { Operation } from '../../../../foundation/model/stream.ts'
import { Passage } from '../framing.ts'
import { HeaderBlock } from './header-block.ts'

/** One direction of a connection. */
export class Way {
  readonly request: boolean
  readonly hpack: HpackDecoder
  readonly block = new HeaderBlock()
  /** The payload being skipped, the stream whose data it is (0: none), and whether it is the stream's last. */
  readonly passage = new Passage()
  passing = 0
  passingLast = false
  /** The operation of the request whose header block is being read. */
  begun: Operation | undefined
  /** A frame was read from it. */
  seen = false
  /** Bytes at the beginning of a call were left because they are too few to decide. */
  heldStart = false
  misses = 0

  constructor(request: boolean, joined: boolean) {
    this.request = request
    this.hpack = new HpackDecoder(joined)
  }

  /** Bytes that it holds. */
  get bytes(): number {
    return this.hpack.memory + this.block.bytes.length
  }

  /** The current frame cannot be followed, and header blocks may be missing. */
  lose(): void {
    this.hpack.forget()
    this.block.clear()
    this.passage.left = 0
    this.passing = 0
    this.begun = undefined
    this.heldStart = false
  }
}
