// Messages of D-Bus (specification 0.43, "Message Protocol").

import { DBusReader, type DBusValue, type DBusVariant, DBusWriter } from './dbus-value.ts'

/** The protocol allows 128 MiB, but no reply to svc is that long. */
const mostMessageBytes = 16 * 1024 * 1024
/** Bytes needed to determine a message's size. */
export const prefixBytes = 16

export const messageTypes = { call: 1, reply: 2, error: 3, signal: 4 } as const

const fields = {
  path: 1,
  interface: 2,
  member: 3,
  errorName: 4,
  replySerial: 5,
  destination: 6,
  signature: 8,
} as const
/** Field → its signature. Other fields are skipped. */
const fieldTypes = new Map<number, string>(
  Object.values(fields).map(field => [
    field,
    field === 1 ? 'o' : field === 5 ? 'u' : field === 8 ? 'g' : 's',
  ]),
)

export interface DBusCall {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  /** Signature of `body`; '' without a body. */
  readonly signature?: string
  readonly body?: readonly DBusValue[]
}

/** A reply, or an unsolicited message. */
export interface DBusMessage {
  readonly type: number
  readonly serial: number
  /** 0 if it is not a reply. */
  readonly replySerial: number
  readonly errorName: string
  readonly signature: string
  /** Reads the body by the message's signature. Throws if they do not match. */
  body(): readonly DBusValue[]
}

/** Encodes a method call. Throws if a value does not match its type. */
export function encodeCall(serial: number, call: DBusCall): Buffer {
  const { signature = '' } = call
  const body = new DBusWriter()
  body.write(signature, call.body ?? [])
  const header = new DBusWriter()
  const list: DBusValue[] = [
    text(fields.path, 'o', call.path),
    text(fields.interface, 's', call.interface),
    text(fields.member, 's', call.member),
    text(fields.destination, 's', call.destination),
  ]
  if (signature !== '') list.push(text(fields.signature, 'g', signature))
  const bytes = body.bytes()
  header.write('yyyyuua(yv)', [littleEndian, messageTypes.call, 0, 1, bytes.length, serial, list])
  header.align(8)
  return Buffer.concat([header.bytes(), bytes])
}

const littleEndian = 'l'.charCodeAt(0)
const bigEndian = 'B'.charCodeAt(0)

function text(field: number, signature: string, value: string): DBusValue {
  return [field, { signature, value }]
}

/** The size of the message that begins with these 16 bytes. Throws if they are not a message. */
export function messageSize(prefix: Buffer): number {
  const order = prefix[0]
  if (order !== littleEndian && order !== bigEndian) throw new Error('a message has no byte order')
  if (prefix[3] !== 1) throw new Error(`a message has version ${prefix[3]} of the protocol`)
  const number = (at: number) => (order === littleEndian ? prefix.readUInt32LE(at) : prefix.readUInt32BE(at))
  const size = Math.ceil((prefixBytes + number(12)) / 8) * 8 + number(4)
  if (size > mostMessageBytes)
    throw new Error(`a message has ${size} bytes, the limit is ${mostMessageBytes}`)
  return size
}

/** Decodes one whole message. Throws if its header is invalid. */
export function decodeMessage(bytes: Buffer): DBusMessage {
  const isLittle = bytes[0] === littleEndian
  const reader = new DBusReader(bytes, isLittle)
  const header = reader.read('yyyyuua(yv)') as readonly number[]
  const [, type, , , bodySize, serial] = header as [number, number, number, number, number, number]
  const list = header[6] as unknown as readonly (readonly [field: number, value: DBusVariant])[]
  reader.align(8)
  if (type === 0 || serial === 0) throw new Error('a message has no type or no serial number')
  const found = new Map<number, DBusValue>()
  for (const [field, { signature, value }] of list) {
    const wanted = fieldTypes.get(field)
    if (wanted === undefined) continue
    if (signature !== wanted) throw new Error(`a message has a header field ${field} of type ${signature}`)
    found.set(field, value)
  }
  const signature = (found.get(fields.signature) ?? '') as string
  const start = reader.at
  return {
    type,
    serial,
    replySerial: (found.get(fields.replySerial) ?? 0) as number,
    errorName: (found.get(fields.errorName) ?? '') as string,
    signature,
    body() {
      const body = new DBusReader(bytes.subarray(start, start + bodySize), isLittle)
      const values = body.read(signature)
      if (body.at !== bodySize) throw new Error('a message is longer than its values')
      return values
    },
  }
}
