import { alphanumeric, is, isBlank } from './characters.ts'
import type { Detector } from './detector.ts'

const most = 512

/** User and password in a URL (RFC 3986, 3.2.1). Only they match: host and path are kept. */
export const urlCredentials: Detector = {
  types: ['url_credentials'],
  triggers: ':',
  find(units, at, find) {
    if (units[at + 1] !== 47 || units[at + 2] !== 47 || !is(units[at - 1], alphanumeric)) return false
    const start = at + 3
    let hasPassword = false
    let end = 0
    for (let i = start; i < start + most; i++) {
      const unit = units[i]!
      if (isBlank(unit) || unit === 47 || unit === 63 || unit === 35 || unit === 34 || unit === 39) break
      if (unit === 58 && end === 0) hasPassword = true
      // The last @ counts: those in a password are often not escaped.
      else if (unit === 64) end = i
    }
    if (end === 0 || !hasPassword) return false
    find.start = start
    find.end = end
    return true
  },
}
