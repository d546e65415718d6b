/** Whether all bytes are 0, as of an identifier that is not set. */
export function isZero(bytes: Uint8Array): boolean {
  let bits = 0
  for (let i = 0; i < bytes.length; i++) bits |= bytes[i]!
  return bits === 0
}
