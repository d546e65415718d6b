import { Interner } from '../../../../foundation/lib/interner.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import type { Call } from '../../../../foundation/model/call.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { describeDatabaseCall, describeDatabaseError } from '../database-call.ts'
import { type Command, Commands } from './commands.ts'

/** Longer words are not error codes. */
const longestCode = 32

/** Describes commands and errors. All connections share it and its texts. */
export class CommandDescription {
  readonly commands = new Commands()
  readonly #words = small(new Interner({ slots: 512, maxLength: longestCode }))

  /** `database`: its number as text, '' if unknown. */
  describe(
    call: Call,
    connection: StreamConnection,
    command: Command,
    argumentCount: number,
    database: string,
  ): void {
    describeDatabaseCall(
      call,
      connection,
      'redis',
      command.name,
      database,
      command.text(Math.max(0, argumentCount)),
    )
  }

  /** Takes the error from the text of an error reply, which begins at `start`. */
  describeError(call: Call, bytes: Buffer, start: number, end: number): void {
    let to = start
    while (to < end && to - start <= longestCode && isCodeByte(bytes[to]!)) to++
    const ended = to === end || bytes[to]! <= 0x20
    const code = ended && to > start && to - start <= longestCode ? this.#words.intern(bytes, start, to) : ''
    describeDatabaseError(call, code === '' ? '_OTHER' : code)
  }

  /** A short decimal number as text; '' for anything else. */
  databaseOf(bytes: Buffer, start: number, end: number): string {
    if (end <= start || end - start > 5) return ''
    for (let at = start; at < end; at++) if (bytes[at]! < 0x30 || bytes[at]! > 0x39) return ''
    return this.#words.intern(bytes, start, end)
  }

  /** A short word of the server, for comparison. */
  word(bytes: Buffer, start: number, end: number): string {
    return end - start > longestCode ? '' : this.#words.intern(bytes, start, end)
  }
}

function isCodeByte(byte: number): boolean {
  return (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x30 && byte <= 0x39) || byte === 0x5f
}
