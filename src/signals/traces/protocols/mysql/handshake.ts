import { utf8Text } from '../../../../foundation/lib/utf8-text.ts'
import { capability, lengthEncoded, lengthSize } from './packets.ts'

/** The result of the handshake. Both packets are untrusted, and may be truncated. */
export class Handshake {
  /** `db.system.name`; '' before the server has spoken. */
  system = ''
  /** The database that the client requests; '' for none. */
  database = ''
  /** The client continues in TLS. */
  encrypted = false
  /** The server's initial status. */
  status = 0
  /** Character sets in which a backslash may be the second byte of a character: SJIS, Big5, GBK and similar ones. */
  ambiguous = false
  /** The client's capabilities were seen. */
  known = false
  #serverCapabilities = 0xffff_ffff
  #clientCapabilities = 0

  has(bit: number): boolean {
    return (this.#serverCapabilities & this.#clientCapabilities & bit) !== 0
  }

  /** The server's greeting, protocol version 10. False if it is not one. */
  readGreeting(bytes: Buffer, start: number, end: number): boolean {
    if (bytes[start] !== 10) return false
    let zero = start + 1
    while (zero < end && bytes[zero] !== 0) zero++
    // After the version: thread (4), challenge (8), a zero, capabilities (2), character set (1), status (2), and the
    // higher capabilities (2).
    if (zero + 16 > end) return false
    this.system = bytes.toString('latin1', start, zero).includes('MariaDB') ? 'mariadb' : 'mysql'
    this.#serverCapabilities = bytes.readUInt16LE(zero + 14)
    if (zero + 21 <= end) {
      this.status = bytes.readUInt16LE(zero + 17)
      this.#serverCapabilities |= bytes.readUInt16LE(zero + 19) << 16
    }
    return true
  }

  /** The client's response (HandshakeResponse41). False if it is not one, or has the format from before version 4.1. */
  readLogin(bytes: Buffer, start: number, end: number): boolean {
    if (end - start < 32) return false
    const capabilities = bytes.readUInt32LE(start)
    if ((capabilities & 0x200) === 0) return false // CLIENT_PROTOCOL_41
    this.known = true
    this.#clientCapabilities = capabilities
    this.ambiguous = ambiguousSets.has(bytes[start + 8]!)
    this.encrypted = (capabilities & capability.ssl) !== 0 && end - start === 32
    if (!this.encrypted && this.has(capability.connectWithDatabase))
      this.database = databaseBehindPassword(bytes, start + 32, end, capabilities)
    return true
  }
}

/** Numbers of character sets and their collations. */
const ambiguousSets = new Set([1, 13, 28, 84, 87, 88, 95, 96, 248, 249, 250])

/** User, password and database follow each other. */
function databaseBehindPassword(bytes: Buffer, start: number, end: number, capabilities: number): string {
  let at = start
  while (at < end && bytes[at] !== 0) at++
  at++
  if ((capabilities & capability.authLengthEncoded) !== 0) {
    const length = lengthEncoded(bytes, at, end)
    if (length < 0) return ''
    at += lengthSize(bytes[at]!) + length
  } else if ((capabilities & capability.secureConnection) !== 0) {
    at += 1 + (bytes[at] ?? 0)
  } else {
    while (at < end && bytes[at] !== 0) at++
    at++
  }
  let zero = at
  while (zero < end && bytes[zero] !== 0) zero++
  return zero < end ? utf8Text(bytes, at, zero) : ''
}

/** The database of COM_CHANGE_USER, whose payload begins at `start`: user, password and database follow each other. */
export function databaseOfChange(bytes: Buffer, start: number, end: number): string {
  return databaseBehindPassword(bytes, start, end, capability.secureConnection)
}
