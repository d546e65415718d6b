/** Reads an unsigned 64-bit number, little-endian; beyond 2^53 it is rounded to a double. Throws out of range. */
export function u64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 4294967296
}
