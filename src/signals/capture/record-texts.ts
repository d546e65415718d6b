import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { Interner } from '../../foundation/lib/interner.ts'
import { ipText } from '../../foundation/lib/ip-text.ts'
import { small } from '../../foundation/lib/small-tables.ts'

/** Names and addresses in the kernel's records, as strings. Known bytes make no garbage. */
export class RecordTexts {
  readonly #words = small(new Interner({ slots: 1024, maxLength: 64 }))
  readonly #addresses = small(new BoundedMap<string, string>(4096))

  /** The text before the first zero of a field of `size` bytes. */
  text(bytes: Buffer, from: number, size: number): string {
    let end = from
    while (end < from + size && bytes[end] !== 0) end++
    return this.#words.intern(bytes, from, end)
  }

  /** The IP address in 16 bytes. */
  address(bytes: Buffer, at: number): string {
    const raw = this.#words.intern(bytes, at, at + 16)
    let text = this.#addresses.get(raw)
    if (text === undefined) {
      text = ipText(bytes.subarray(at, at + 16))
      this.#addresses.set(raw, text)
    }
    return text
  }
}
