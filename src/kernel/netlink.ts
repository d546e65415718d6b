// Netlink (netlink(7)): requests to the kernel, and answers as cursors over their bytes.

import { utf8Text } from '../foundation/lib/utf8-text.ts'
import { loadNative, type Native, Unsupported } from './native.ts'

/** Netlink protocols. */
export const protocols = { route: 0, sockDiag: 4, generic: 16 } as const

const flagRequest = 1
const flagDump = 0x300
const headerBytes = 16
const attributeHeaderBytes = 4

/** Part of an answer. Numbers are little-endian, as on all supported machines; reading beyond the end throws. */
export class Range {
  bytes: Buffer = Buffer.alloc(0)
  start = 0
  end = 0

  reset(bytes: Buffer, start: number, end: number): this {
    this.bytes = bytes
    this.start = start
    this.end = end
    return this
  }

  get length(): number {
    return this.end - this.start
  }

  u8(at = 0): number {
    return this.bytes[this.#place(at, 1)]!
  }

  u16(at = 0): number {
    return this.bytes.readUInt16LE(this.#place(at, 2))
  }

  u32(at = 0): number {
    return this.bytes.readUInt32LE(this.#place(at, 4))
  }

  /** Rounded to a double. */
  u64(at = 0): number {
    return this.u32(at + 4) * 2 ** 32 + this.u32(at)
  }

  /** Up to the first zero. */
  text(): string {
    const zero = this.bytes.indexOf(0, this.start)
    return utf8Text(this.bytes, this.start, zero < 0 || zero > this.end ? this.end : zero)
  }

  /** A view that is valid until the next answer. */
  view(at = 0): Buffer {
    return this.bytes.subarray(this.start + at, this.end)
  }

  #place(at: number, size: number): number {
    if (at + size > this.length)
      throw new Error(`cannot read a netlink answer: ${size} bytes at ${at} of ${this.length}`)
    return this.start + at
  }
}

/** Iterates over attributes. */
export class Attributes extends Range {
  /** Without the bits for nesting and byte order. */
  type = 0
  #next = 0
  #limit = 0

  /** Starts at an offset of another range: after its header, or in a nested attribute. */
  within(range: Range, at = 0): this {
    this.#next = range.start + at
    this.#limit = range.end
    return this.reset(range.bytes, range.end, range.end)
  }

  /** Moves to the next attribute, whose content becomes the range. */
  next(): boolean {
    const at = this.#next
    if (this.#limit - at < attributeHeaderBytes) return false
    this.reset(this.bytes, at, this.#limit)
    const length = this.u16()
    if (length < attributeHeaderBytes || length > this.length)
      throw new Error(`cannot read a netlink answer: an attribute of ${length} bytes in ${this.length}`)
    this.type = this.u16(2) & 0x3fff
    this.start = at + attributeHeaderBytes
    this.end = at + length
    this.#next = align(this.end)
    return true
  }
}

/** A message: its type, and the bytes after its header. */
export class Message extends Range {
  type = 0
}

/** Has room for several parts of a dump, each at most 32 KiB. */
let buffer: Buffer | undefined
let isBusy = false
const message = new Message()

/**
 * Sends a request and calls `each` for every message of the answer, which must not be kept. `payload` follows the
 * header. Throws if the kernel returns an error (with `code`), or there is no native addon.
 */
export function askKernel(
  protocol: number,
  { type, dump = true, payload }: { type: number; dump?: boolean; payload: Uint8Array },
  each: (message: Message) => void,
): void {
  if (isBusy) throw new Error('cannot send a netlink request: the previous answer is still being read')
  const request = Buffer.alloc(headerBytes + payload.length)
  request.writeUInt32LE(request.length, 0)
  request.writeUInt16LE(type, 4)
  request.writeUInt16LE(flagRequest | (dump ? flagDump : 0), 6)
  request.writeUInt32LE(1, 8)
  request.set(payload, headerBytes)
  const native = nativeForNetlink()
  buffer ??= Buffer.allocUnsafeSlow(64 * 1024)
  const into = buffer
  isBusy = true
  try {
    native.netlink(protocol, request, into, length => readMessages(into, length, each))
  } finally {
    isBusy = false
  }
}

/** The addon for netlink; throws, in words, if there is none. */
export function nativeForNetlink(): Native {
  const native = loadNative()
  if (native instanceof Unsupported) throw new Error(`${native.reason}; ${native.hint}`)
  return native
}

/** Excludes control messages. */
export function readMessages(bytes: Buffer, length: number, each: (message: Message) => void): void {
  let at = 0
  while (length - at >= headerBytes) {
    message.reset(bytes, at, length)
    const size = message.u32()
    if (size < headerBytes || size > length - at)
      throw new Error(`cannot read a netlink answer: a message of ${size} bytes at ${at} of ${length}`)
    message.type = message.u16(4)
    message.reset(bytes, at + headerBytes, at + size)
    // NLMSG_MIN_TYPE: lower ones are control messages, which the addon has handled.
    if (message.type >= 16) each(message)
    at = align(at + size)
  }
}

const controlFamily = 16
const getFamily = 3
const familyId = 1
const familyName = 2

/** Id of a generic netlink family; undefined if this kernel has none of that name. */
export function genericFamily(name: string): number | undefined {
  const payload = Buffer.concat([Uint8Array.of(getFamily, 1, 0, 0), attribute(familyName, text(name))])
  let id: number | undefined
  const attributes = new Attributes()
  try {
    askKernel(protocols.generic, { type: controlFamily, dump: false, payload }, answer => {
      for (attributes.within(answer, 4); attributes.next(); )
        if (attributes.type === familyId) id = attributes.u16()
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  return id
}

/** A padded attribute for a request. */
export function attribute(type: number, content: Uint8Array): Buffer {
  const made = Buffer.alloc(align(4 + content.length))
  made.writeUInt16LE(4 + content.length, 0)
  made.writeUInt16LE(type, 2)
  made.set(content, 4)
  return made
}

export function text(content: string): Buffer {
  return Buffer.from(`${content}\0`)
}

export function u32(value: number): Buffer {
  const made = Buffer.alloc(4)
  made.writeUInt32LE(value, 0)
  return made
}

/** Messages and attributes are aligned to 4 bytes. */
function align(at: number): number {
  return (at + 3) & ~3
}
