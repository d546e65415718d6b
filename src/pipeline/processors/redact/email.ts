import {
  alphanumeric,
  is,
  isBlank,
  isDigit,
  isForeignLetter,
  isLocal,
  isNumber,
  letter,
  lowered,
} from './characters.ts'
import type { Detector } from './detector.ts'

/** Maximum lengths (RFC 5321, 4.5.3.1; RFC 1035, 2.3.4). */
const mostLocal = 64
const mostLabel = 63
const mostDomain = 253

/** Endings after an @ that are not top-level domains: names of files (`icon@2x.png`) and of systemd units. */
const fileEndings = new Set(
  (
    'png jpg jpeg gif svg webp ico css js mjs cjs ts tsx jsx json html htm txt log conf yaml yml xml ' +
    'service socket timer slice scope mount automount swap device target path'
  ).split(' '),
)

/** E-mail addresses; `%40` counts as @, as in URLs and forms. */
export const email: Detector = {
  types: ['email'],
  triggers: '@%',
  find(units, at, find) {
    let domain = at + 1
    if (units[at] === 37) {
      if (units[at + 1] !== 52 || units[at + 2] !== 48) return false
      domain = at + 3
    }
    let start = at
    while (start > at - mostLocal && isLocal(units[start - 1])) start--
    while (start < at && (units[start] === 46 || units[start] === 39)) start++
    if (start === at || units[at - 1] === 46) return false
    const end = domainEnd(units, domain)
    if (end === 0 || isUserOfUrl(units, start) || isRemotePath(units, end)) return false
    find.start = start
    find.end = end
    return true
  },
}

/** End of the longest part that is a domain with a top-level domain; 0 if there is none. */
function domainEnd(units: Uint8Array, from: number): number {
  let end = 0
  let at = from
  let startsWithNumber = false
  for (let labels = 1; at - from < mostDomain; labels++) {
    const start = at
    while (
      at - start <= mostLabel &&
      (is(units[at], alphanumeric) || units[at] === 45 || isForeignLetter(units[at]))
    )
      at++
    let last = at
    while (last > start && units[last - 1] === 45) last--
    if (last === start || last - start > mostLabel || units[start] === 45) break
    if (labels === 1) startsWithNumber = isNumber(units, start, last)
    // A version: `package@1.2.3`.
    else if (labels === 2 && startsWithNumber && isDigit(units[start])) return 0
    else if (isTopLevel(units, start, last)) end = last
    if (last < at || units[at] !== 46) break
    at++
  }
  return end
}

function isTopLevel(units: Uint8Array, start: number, end: number): boolean {
  if (end - start < 2) return false
  if (end - start > 4 && lowered(units[start]) === 120 && lowered(units[start + 1]) === 110)
    if (units[start + 2] === 45 && units[start + 3] === 45) return true
  for (let i = start; i < end; i++) if (!is(units[i], letter) && !isForeignLetter(units[i])) return false
  if (end - start > 9) return true
  let name = ''
  for (let i = start; i < end; i++) name += String.fromCharCode(lowered(units[i]))
  return !fileEndings.has(name)
}

/** Whether the part before the @ belongs to `://user:password@`. */
function isUserOfUrl(units: Uint8Array, start: number): boolean {
  for (let i = start - 1; i >= start - 128; i--) {
    const unit = units[i]!
    if (unit === 47) return units[i - 1] === 47 && units[i - 2] === 58
    if (isBlank(unit) || unit === 34 || unit === 39 || unit === 63 || unit === 60) return false
  }
  return false
}

/** Whether `:path/of/a/file` follows, as for git, scp and rsync. */
function isRemotePath(units: Uint8Array, end: number): boolean {
  if (units[end] !== 58) return false
  for (let i = end + 1; i < end + 128 && !isBlank(units[i]); i++) if (units[i] === 47) return true
  return false
}
