/** True if all bytes are 0, as in an unset identifier. */
export function isZero(bytes: Uint8Array): boolean {
  let bits = 0
  for (let i = 0; i < bytes.length; i++) bits |= bytes[i]!
  return bits === 0
}
