/** Whether a byte or code unit is a decimal digit. */
export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** The value of a hexadecimal digit; -1 for others. */
export function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
