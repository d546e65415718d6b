/**
 * Formats an IP address of 4 or 16 bytes: IPv4-mapped IPv6 (RFC 4291, 2.5.5.2) as IPv4, other IPv6 in the shortest form
 * (RFC 5952). '' for other lengths.
 */
export function ipText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) return ''
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push((bytes[i]! << 8) | bytes[i + 1]!)
  if (groups[5] === 0xffff && groups.slice(0, 5).every(group => group === 0))
    return bytes.subarray(12).join('.')
  let from = -1
  let most = 1
  for (let i = 0; i < 8; i++) {
    let length = 0
    while (groups[i + length] === 0) length++
    if (length > most) {
      from = i
      most = length
    }
  }
  const hex = groups.map(group => group.toString(16))
  return from < 0 ? hex.join(':') : `${hex.slice(0, from).join(':')}::${hex.slice(from + most).join(':')}`
}

/** Formats a hardware address: `02:fc:00:00:00:01`. */
export function macText(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += `${text === '' ? '' : ':'}${byte.toString(16).padStart(2, '0')}`
  return text
}

/** Whether `ipText` of an address is one of this host alone. */
export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1'
}
