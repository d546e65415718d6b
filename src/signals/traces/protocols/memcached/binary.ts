// The binary protocol's numbers (memcached's protocol_binary.h).

export const headerBytes = 24
export const requestMagic = 0x80
export const responseMagic = 0x81

interface Opcode {
  readonly name: string
  readonly quiet: boolean
}

/** Quiet commands have the name of the command that they are the quiet form of. */
const names: Readonly<Record<number, string>> = {
  0: 'get',
  1: 'set',
  2: 'add',
  3: 'replace',
  4: 'delete',
  5: 'incr',
  6: 'decr',
  7: 'quit',
  8: 'flush_all',
  9: 'get quiet',
  10: 'noop',
  11: 'version',
  12: 'get',
  13: 'get quiet',
  14: 'append',
  15: 'prepend',
  16: 'stats',
  17: 'set quiet',
  18: 'add quiet',
  19: 'replace quiet',
  20: 'delete quiet',
  21: 'incr quiet',
  22: 'decr quiet',
  23: 'quit quiet',
  24: 'flush_all quiet',
  25: 'append quiet',
  26: 'prepend quiet',
  27: 'verbosity',
  28: 'touch',
  29: 'gat',
  30: 'gat quiet',
  32: 'sasl_list_mechs',
  33: 'sasl_auth',
  34: 'sasl_step',
  35: 'gat',
  36: 'gat quiet',
}

/** By number; undefined for invalid opcodes. */
export const opcodes: readonly (Opcode | undefined)[] = Array.from({ length: 256 }, (_, code) => {
  const [name, quiet] = (names[code] ?? '').split(' ')
  return name ? { name, quiet: quiet !== undefined } : undefined
})

export const Code = { quit: 0x07, stat: 0x10, quitQuiet: 0x17 } as const

/** A status that is an error: its number as text, and its name. */
export interface StatusError {
  readonly code: string
  readonly type: string
}

/** Names of the statuses that are errors. A missing, existing or unstored item is a normal response. */
const errors = new Map([
  [0x03, 'E2BIG'],
  [0x04, 'EINVAL'],
  [0x06, 'DELTA_BADVAL'],
  [0x07, 'NOT_MY_VBUCKET'],
  [0x08, 'AUTH_ERROR'],
  [0x20, 'AUTH_ERROR'],
  [0x81, 'UNKNOWN_COMMAND'],
  [0x82, 'ENOMEM'],
  [0x83, 'NOT_SUPPORTED'],
  [0x84, 'EINTERNAL'],
  [0x85, 'EBUSY'],
  [0x86, 'ETMPFAIL'],
])
/** OK, not found, exists, not stored, and a further authentication step. */
const answers = new Set([0x00, 0x01, 0x02, 0x05, 0x09, 0x21])

const statusErrors = new Map<number, StatusError>()
for (const [status, type] of errors) statusErrors.set(status, { code: String(status), type })
const otherError: StatusError = { code: '_OTHER', type: '_OTHER' }

/** The error of a status; undefined if there is none. */
export function errorOf(status: number): StatusError | undefined {
  return answers.has(status) ? undefined : (statusErrors.get(status) ?? otherError)
}

/** Whether there is a valid header at `at`; `magic` determines the side. */
export function isHeader(bytes: Buffer, at: number, magic: number): boolean {
  const extras = bytes[at + 4]!
  return (
    bytes[at] === magic &&
    opcodes[bytes[at + 1]!] !== undefined &&
    bytes[at + 5] === 0 &&
    extras + bytes.readUInt16BE(at + 2) <= bytes.readUInt32BE(at + 8) &&
    extras <= 24
  )
}

/** Whether such a header begins there; undefined if there are too few bytes. */
export function headerBegins(bytes: Buffer, at: number, end: number, magic: number): boolean | undefined {
  if (end - at >= headerBytes) return isHeader(bytes, at, magic)
  return bytes[at] === magic ? undefined : false
}
