import { isAt, isDigit, isUpper } from './characters.ts'
import type { Detector } from './detector.ts'

const begin = '-----BEGIN '
const ending = '-----END '
const dashes = '-----'
/** Maximum length taken if there is no end marker. */
const most = 8192

/** Private keys in PEM (RFC 7468) and of OpenPGP, from the first dash to the last. */
export const privateKey: Detector = {
  types: ['private_key'],
  triggers: '-',
  find(units, at, find) {
    if (units[at - 1] === 45 || !isAt(units, at, begin)) return false
    const label = at + begin.length
    let end = label
    while (end < label + 48 && (isUpper(units[end]) || isDigit(units[end]) || units[end] === 32)) end++
    if (!isAt(units, end, dashes) || !namesPrivateKey(units, label, end)) return false
    find.start = at
    find.end = keyEnd(units, end + dashes.length)
    return true
  },
}

function namesPrivateKey(units: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (units[i] === 80 && isAt(units, i, 'PRIVATE KEY')) return true
  return false
}

function keyEnd(units: Uint8Array, from: number): number {
  let at = from
  for (; at < from + most && units[at] !== 0; at++) {
    if (units[at] !== 45 || !isAt(units, at, ending)) continue
    let end = at + ending.length
    while (end < at + 64 && (isUpper(units[end]) || isDigit(units[end]) || units[end] === 32)) end++
    return isAt(units, end, dashes) ? end + dashes.length : end
  }
  return at
}
