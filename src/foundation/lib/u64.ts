/** An unsigned number of 64 bits, little-endian; beyond 2^53 it is rounded as a double is. Throws beyond the bytes. */
export function u64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 4294967296
}
