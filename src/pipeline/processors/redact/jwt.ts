import { beginsWord, isBase64url } from './characters.ts'
import type { Detector } from './detector.ts'

const algorithm = '"alg"'

/**
 * JSON web tokens (RFC 7515, 7516): three parts, or five if encrypted; the first one decodes to JSON that names an
 * algorithm. `eyJ` is `{"` in base64.
 */
export const jwt: Detector = {
  types: ['jwt'],
  triggers: 'J',
  after: before => before === 121,
  find(units, at, find) {
    if (units[at - 1] !== 121 || units[at - 2] !== 101) return false
    const start = at - 2
    // No match starts inside a token, so that no part is read twice.
    if (!beginsWord(units, start) || units[start - 1] === 45 || units[start - 1] === 46) return false
    const header = partEnd(units, start)
    if (units[header] !== 46) return false
    const payload = partEnd(units, header + 1)
    if (payload - header < 5 || units[payload] !== 46 || !namesAlgorithm(units, start, header)) return false
    let end = partEnd(units, payload + 1)
    for (let parts = 4; parts <= 5 && units[end] === 46 && isBase64url(units[end + 1]); parts++)
      end = partEnd(units, end + 1)
    find.start = start
    find.end = end
    return true
  },
}

function partEnd(units: Uint8Array, from: number): number {
  let at = from
  while (isBase64url(units[at])) at++
  return at
}

/** Decodes base64url and searches for `"alg"`. */
function namesAlgorithm(units: Uint8Array, start: number, end: number): boolean {
  let bits = 0
  let count = 0
  let matched = 0
  for (let i = start; i < end; i++) {
    bits = ((bits << 6) | sextet(units[i]!)) & 0x3fff
    count += 6
    if (count < 8) continue
    count -= 8
    const byte = (bits >> count) & 0xff
    if (byte === algorithm.charCodeAt(matched)) matched++
    else matched = byte === 34 ? 1 : 0
    if (matched === algorithm.length) return true
  }
  return false
}

function sextet(unit: number): number {
  if (unit >= 97) return unit - 71
  if (unit === 95) return 63
  if (unit >= 65) return unit - 65
  return unit === 45 ? 62 : unit + 4
}
