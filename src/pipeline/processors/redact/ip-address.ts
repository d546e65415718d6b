import { beginsWord, is, isDigit, isHex, word } from './characters.ts'
import type { Detector } from './detector.ts'

/** IPv4 addresses: four numbers up to 255 without leading zeros. More or fewer numbers are a version or an OID. */
export const ipv4: Detector = {
  types: ['ipv4'],
  triggers: '',
  runs: (digits, next) => digits <= 3 && next === '.',
  find(units, at, find) {
    if (units[at - 1] === 46 && isDigit(units[at - 2])) return false
    const end = quadEnd(units, at)
    if (end === 0) return false
    find.start = at
    find.end = end
    return true
  },
}

/** End of the dotted quad at `at`; 0 if there is none. */
function quadEnd(units: Uint8Array, from: number): number {
  let at = from
  for (let octet = 0; octet < 4; octet++) {
    if (octet > 0) {
      if (units[at] !== 46) return 0
      at++
    }
    const start = at
    let value = 0
    while (at - start < 4 && isDigit(units[at])) value = value * 10 + units[at++]! - 48
    if (at === start || value > 255 || (at - start > 1 && units[start] === 48)) return 0
  }
  if (is(units[at], word) || (units[at] === 46 && isDigit(units[at + 1]))) return 0
  return at
}

/** IPv6 addresses (RFC 4291, 2.2), including the zone, without the prefix length. */
export const ipv6: Detector = {
  types: ['ipv6'],
  triggers: ':',
  find(units, at, find) {
    if (!isHex(units[at + 1]) && units[at + 1] !== 58) return false
    let start = at
    while (start > at - 5 && isHex(units[start - 1])) start--
    if (at - start > 4 || units[start - 1] === 58 || !beginsWord(units, start)) return false
    if (start === at && units[at + 1] !== 58) return false
    const end = groupsEnd(units, start)
    if (end === 0 || is(units[end], word)) return false
    find.start = start
    find.end = zoneEnd(units, end)
    return true
  },
}

/** End of the address at `from`; 0 if there is none. */
function groupsEnd(units: Uint8Array, from: number): number {
  let groups = 0
  let isShort = false
  let digits = 0
  let at = from
  while (groups < 8) {
    const start = at
    while (at - start < 5 && isHex(units[at])) {
      if (isDigit(units[at])) digits++
      at++
    }
    if (at - start > 4) return 0
    if (at > start) {
      groups++
      if (units[at] === 46 && isDigit(units[at + 1])) {
        const end = quadEnd(units, start)
        return isShort ? (groups <= 7 ? end : 0) : groups === 7 ? end : 0
      }
    }
    if (units[at] !== 58) break
    if (units[at + 1] === 58) {
      if (isShort) return 0
      isShort = true
      at += 2
      if (!isHex(units[at])) break
    } else if (at > start && isHex(units[at + 1])) at++
    else break
  }
  // Without a digit it is a name in some programming language, `add::face`; before a colon it is something longer.
  if (units[at] === 58 && (units[at + 1] === 58 || isHex(units[at + 1]))) return 0
  return groups > 0 && (isShort ? groups < 8 && (digits > 0 || groups > 3) : groups === 8) ? at : 0
}

function zoneEnd(units: Uint8Array, end: number): number {
  if (units[end] !== 37 || !is(units[end + 1], word)) return end
  let at = end + 1
  while (at < end + 17 && (is(units[at], word) || units[at] === 45 || units[at] === 46)) at++
  return at
}
