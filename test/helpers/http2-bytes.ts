// Bytes of HTTP/2, written by hand.

/** A frame (RFC 9113, section 4.1). */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A header block of literals; `indexed`: they become entries of the table. */
export function block(fields: Readonly<Record<string, string>>, indexed = false): Buffer {
  const text = (value: string) => {
    const length =
      value.length < 127
        ? [value.length]
        : [127, ((value.length - 127) & 127) | 128, (value.length - 127) >> 7]
    return Buffer.concat([Buffer.from(length), Buffer.from(value, 'latin1')])
  }
  return Buffer.concat(
    Object.entries(fields).flatMap(([name, value]) => [
      Buffer.from([indexed ? 0x40 : 0]),
      text(name),
      text(value),
    ]),
  )
}
