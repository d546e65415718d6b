import { alphanumeric, beginsWord, is, isDigit, isUpper, lowered, word } from './characters.ts'
import type { Detector } from './detector.ts'

/** Lengths by country (ISO 13616, SWIFT's IBAN registry of 2024). */
const registry =
  'AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 ' +
  'FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 ' +
  'LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 ' +
  'SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30'

const lengths = new Uint8Array(26 * 26)
for (const entry of registry.split(' '))
  lengths[(entry.charCodeAt(0) - 65) * 26 + entry.charCodeAt(1) - 65] = Number(entry.slice(2))

/** Bank account numbers: the length for the country, and the check digits (mod 97, ISO 7064). */
export const iban: Detector = {
  types: ['iban'],
  triggers: '',
  afterCapitals: true,
  find(units, at, find) {
    const start = at - 2
    if (find.run < 2 || !isUpper(units[start]) || !beginsWord(units, start)) return false
    const length = lengths[(units[start]! - 65) * 26 + units[start + 1]! - 65]!
    if (length === 0) return false
    let rest = 0
    let end = at + 2
    for (let count = 4; count < length; count++) {
      // In print, a space follows every fourth character.
      if (count % 4 === 0 && (units[end] === 32 || units[end] === 45)) end++
      if (!is(units[end], alphanumeric)) return false
      rest = append(rest, units[end++])
    }
    for (let i = start; i < at + 2; i++) rest = append(rest, units[i])
    if (rest !== 1 || is(units[end], word)) return false
    find.start = start
    find.end = end
    return true
  },
}

/** Remainder modulo 97 with one more character; letters count from 10. */
function append(rest: number, unit: number | undefined): number {
  return isDigit(unit) ? (rest * 10 + unit! - 48) % 97 : (rest * 100 + lowered(unit) - 87) % 97
}
