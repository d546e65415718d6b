import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { Interner } from '../../../../foundation/lib/interner.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'

/** Effect of a command on the rest of the connection. */
export const Effect = {
  none: 0,
  select: 1,
  subscribe: 2,
  monitor: 3,
  /** CLIENT, of which REPLY matters. */
  client: 4,
  /** The connection becomes a stream of the commands that the server executes. */
  replicate: 5,
  reset: 6,
} as const
export type Effect = (typeof Effect)[keyof typeof Effect]

const effects = new Map<string, Effect>([
  ['SELECT', Effect.select],
  ['SUBSCRIBE', Effect.subscribe],
  ['PSUBSCRIBE', Effect.subscribe],
  ['SSUBSCRIBE', Effect.subscribe],
  ['UNSUBSCRIBE', Effect.subscribe],
  ['PUNSUBSCRIBE', Effect.subscribe],
  ['SUNSUBSCRIBE', Effect.subscribe],
  ['MONITOR', Effect.monitor],
  ['CLIENT', Effect.client],
  ['PSYNC', Effect.replicate],
  ['SYNC', Effect.replicate],
  ['RESET', Effect.reset],
])

/** Commands whose first argument is a keyword and not a value. */
const containers = new Set([
  'ACL',
  'CLIENT',
  'CLUSTER',
  'COMMAND',
  'CONFIG',
  'DEBUG',
  'FUNCTION',
  'LATENCY',
  'MEMORY',
  'MODULE',
  'OBJECT',
  'PUBSUB',
  'SCRIPT',
  'SENTINEL',
  'SLOWLOG',
  'XGROUP',
  'XINFO',
])

const longestWord = 32
const mostMarks = 8

/** A command, or a container with its subcommand. */
export class Command {
  readonly name: string
  readonly effect: Effect
  /** Its subcommands by name; undefined if it has none. */
  readonly subcommands: BoundedMap<string, Command> | undefined
  /** Texts with 0, 1, … arguments. */
  readonly #texts: string[]

  constructor(name: string, text: string, effect: Effect, container: boolean) {
    this.name = name
    this.effect = effect
    this.subcommands = container ? small(new BoundedMap(128)) : undefined
    this.#texts = Array.from({ length: mostMarks + 1 }, (_, count) => text + ' ?'.repeat(count))
    this.#texts.push(`${this.#texts[mostMarks]} …`)
  }

  /** `db.query.text`: the command's words, and a `?` for each argument. */
  text(argumentCount: number): string {
    return this.#texts[Math.min(argumentCount, mostMarks + 1)]!
  }
}

/** Anything that does not look like a command. */
export const otherCommand: Command = new Command('_OTHER', '_OTHER', Effect.none, false)

/** The commands seen, by their names in capital letters. */
export class Commands {
  readonly #words = small(new Interner({ slots: 1_024, maxLength: longestWord }))
  readonly #seen = small(new BoundedMap<string, Command>(1_024))
  readonly #scratch = Buffer.alloc(longestWord)

  of(bytes: Buffer, start: number, end: number): Command {
    const name = this.word(bytes, start, end)
    if (name === '') return otherCommand
    let command = this.#seen.get(name)
    if (command === undefined) {
      command = new Command(name, name, effects.get(name) ?? Effect.none, containers.has(name))
      this.#seen.set(name, command)
    }
    return command
  }

  /** The subcommand named by these bytes; undefined if they are an argument. */
  subcommand(command: Command, bytes: Buffer, start: number, end: number): Command | undefined {
    const { subcommands } = command
    const word = subcommands === undefined ? '' : this.word(bytes, start, end)
    if (subcommands === undefined || word === '') return undefined
    let found = subcommands.get(word)
    if (found === undefined) {
      found = new Command(command.name, `${command.name} ${word}`, command.effect, false)
      subcommands.set(word, found)
    }
    return found
  }

  /** In capital letters; '' if it does not look like a keyword of Redis. */
  word(bytes: Buffer, start: number, end: number): string {
    const length = end - start
    if (length < 1 || length > longestWord || !isLetter(bytes[start]!)) return ''
    for (let i = 0; i < length; i++) {
      const byte = bytes[start + i]!
      if (!isWordByte(byte)) return ''
      this.#scratch[i] = byte >= 0x61 ? byte & 0xdf : byte
    }
    return this.#words.intern(this.#scratch, 0, length)
  }
}

export function isLetter(byte: number): boolean {
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x7a
}

/** Modules use `.`, commands `_` and `-`. */
function isWordByte(byte: number): boolean {
  return isLetter(byte) || (byte >= 0x30 && byte <= 0x39) || byte === 0x2e || byte === 0x5f || byte === 0x2d
}
