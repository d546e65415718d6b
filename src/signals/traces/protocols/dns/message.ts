export const headerBytes = 12
/** Maximum bytes of a name in RFC 1035. */
const longestName = 255
const longestLabel = 63
const mostAddresses = 16
/** Maximum number of records read; further ones are skipped. */
const mostRecords = 128

const responseBit = 0x80
const truncatedBit = 0x02
const opcodeBits = 0x78

export const recordType = { a: 1, ptr: 12, aaaa: 28 } as const

/** Result of parsing a message. */
export const Read = { bad: 0, whole: 1, cut: 2 } as const
export type Read = (typeof Read)[keyof typeof Read]

interface TypeName {
  readonly name: string
  readonly spanName: string
}

/** IANA's registry of resource record types, those that are queried. */
const types: Readonly<Record<number, string>> = {
  1: 'A',
  2: 'NS',
  5: 'CNAME',
  6: 'SOA',
  12: 'PTR',
  13: 'HINFO',
  15: 'MX',
  16: 'TXT',
  28: 'AAAA',
  29: 'LOC',
  33: 'SRV',
  35: 'NAPTR',
  37: 'CERT',
  39: 'DNAME',
  43: 'DS',
  44: 'SSHFP',
  46: 'RRSIG',
  47: 'NSEC',
  48: 'DNSKEY',
  50: 'NSEC3',
  52: 'TLSA',
  64: 'SVCB',
  65: 'HTTPS',
  99: 'SPF',
  251: 'IXFR',
  252: 'AXFR',
  255: 'ANY',
  257: 'CAA',
}
const typeNames = new Map<number, TypeName>()
for (const [type, name] of Object.entries(types))
  typeNames.set(Number(type), { name, spanName: `DNS ${name}` })
const otherType: TypeName = { name: '_OTHER', spanName: 'DNS' }

/** IANA's registry of response codes. */
const codes = [
  ...['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'YXDOMAIN', 'YXRRSET', 'NXRRSET'],
  ...['NOTAUTH', 'NOTZONE'],
]

/** `_OTHER` for rare types. */
export function typeName(type: number): TypeName {
  return typeNames.get(type) ?? otherType
}

export function codeName(code: number): string {
  return codes[code] ?? '_OTHER'
}

/** One message, as far as a lookup needs it. Reused for all messages. */
export class Message {
  id = 0
  response = false
  truncated = false
  code = 0
  /** 0 or 1. */
  questions = 0
  type = 0
  /** The question's name in lower case, escaped as in a zone file (RFC 4343): `name[0, nameLength)`. */
  readonly name = Buffer.alloc(4 * longestName + 4)
  nameLength = 0
  /** Addresses in the answers, each preceded by its length: `addressBytes[0, addressLength)`. */
  readonly addressBytes = Buffer.alloc(mostAddresses * 17)
  addressLength = 0
  addresses = 0
  /** Offset after the message. */
  end = 0

  /** Parses the message at `start`. It is `cut` rather than `bad` only if its whole question is present. */
  read(bytes: Buffer, start: number, end: number): Read {
    if (end - start < headerBytes) return Read.bad
    const flags = bytes[start + 2]!
    this.id = bytes.readUInt16BE(start)
    this.response = (flags & responseBit) !== 0
    this.truncated = (flags & truncatedBit) !== 0
    this.code = bytes[start + 3]! & 0x0f
    this.questions = bytes.readUInt16BE(start + 4)
    this.type = 0
    this.nameLength = 0
    this.addresses = 0
    this.addressLength = 0
    if ((flags & opcodeBits) !== 0 || this.questions > 1) return Read.bad
    // A server that did not understand a query may omit its question.
    if (this.questions === 0 && !this.response) return Read.bad
    let at = start + headerBytes
    if (this.questions === 1) {
      at = this.#question(bytes, at, end)
      if (at < 0) return Read.bad
    }
    const answers = bytes.readUInt16BE(start + 6)
    const records = answers + bytes.readUInt16BE(start + 8) + bytes.readUInt16BE(start + 10)
    return this.#records(bytes, at, end, answers, records)
  }

  /** Returns the offset after the question, -1 if it is invalid. */
  #question(bytes: Buffer, start: number, end: number): number {
    let at = start
    let length = 0
    for (;;) {
      if (at >= end) return -1
      const size = bytes[at]!
      // There is nothing before the question that a pointer could point to.
      if (size > longestLabel || at + 1 + size > end || at - start + size >= longestName) return -1
      at++
      if (size === 0) break
      if (length > 0) this.name[length++] = 0x2e
      for (const labelEnd = at + size; at < labelEnd; at++) length = this.#addEscaped(bytes[at]!, length)
    }
    if (length === 0) this.name[length++] = 0x2e
    this.nameLength = length
    if (at + 4 > end) return -1
    this.type = bytes.readUInt16BE(at)
    return at + 4
  }

  /** Returns the name's new length. */
  #addEscaped(byte: number, length: number): number {
    const { name } = this
    if (byte <= 0x20 || byte >= 0x7f) {
      name[length] = 0x5c
      name[length + 1] = 0x30 + Math.trunc(byte / 100)
      name[length + 2] = 0x30 + (Math.trunc(byte / 10) % 10)
      name[length + 3] = 0x30 + (byte % 10)
      return length + 4
    }
    let to = length
    if (byte === 0x2e || byte === 0x5c) name[to++] = 0x5c
    name[to] = byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
    return to + 1
  }

  /** Reads addresses from the first `answers` records; sets `end` if all records are present. */
  #records(bytes: Buffer, start: number, end: number, answers: number, records: number): Read {
    let at = start
    for (let index = 0; index < records; index++) {
      at = ownerEnd(bytes, at, end)
      if (at < 0 || at + 10 > end || index === mostRecords) {
        this.end = end
        return Read.cut
      }
      const type = bytes.readUInt16BE(at)
      const length = bytes.readUInt16BE(at + 8)
      const data = at + 10
      at = data + length
      if (at > end) {
        this.end = end
        return Read.cut
      }
      if (index < answers && this.addresses < mostAddresses) this.#address(bytes, data, type, length)
    }
    this.end = at
    return Read.whole
  }

  #address(bytes: Buffer, at: number, type: number, length: number): void {
    const isAddress = (type === recordType.a && length === 4) || (type === recordType.aaaa && length === 16)
    if (!isAddress) return
    this.addressBytes[this.addressLength] = length
    bytes.copy(this.addressBytes, this.addressLength + 1, at, at + length)
    this.addressLength += 1 + length
    this.addresses++
  }
}

/**
 * Offset after the name of a record: it ends with a pointer, which need not be followed, or with the root. -1: cut off.
 */
function ownerEnd(bytes: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && at - start <= longestName) {
    const size = bytes[at]!
    if (size >= 0xc0) return at + 2
    if (size > longestLabel) return -1
    at += 1 + size
    if (size === 0) return at
  }
  return -1
}
