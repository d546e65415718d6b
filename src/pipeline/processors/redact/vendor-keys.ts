import {
  alphanumeric,
  beginsWord,
  is,
  isAt,
  isBase64url,
  isDigit,
  isHex,
  isUpper,
  letter,
  lowered,
  matchesAt,
  word,
} from './characters.ts'
import type { Detector } from './detector.ts'
import { entropy } from './entropy.ts'

interface Vendor {
  readonly prefix: string
  /** Position of the trigger in the prefix. */
  readonly trigger: number
  readonly fewest: number
  readonly most: number
  readonly takes: (unit: number | undefined) => boolean
}

const isAlphanumeric = (unit: number | undefined) => is(unit, alphanumeric)
const isWord = (unit: number | undefined) => is(unit, word)
const isCapitalOrDigit = (unit: number | undefined) => isUpper(unit) || isDigit(unit)
const isDotted = (unit: number | undefined) => isBase64url(unit) || unit === 46

/** Prefixes of vendors' keys, and length and characters of the rest (from the vendors' pages on secret scanning). */
const vendors: readonly Vendor[] = [
  ...['AKIA', 'ASIA', 'ABIA', 'ACCA'].map(prefix => vendor(prefix, 'A', 16, 16, isCapitalOrDigit)),
  vendor('AIza', 'A', 35, 35, isBase64url),
  vendor('SG.', 'S', 40, 80, isDotted),
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'].map(prefix => vendor(prefix, '_', 36, 255, isAlphanumeric)),
  vendor('github_pat_', '_', 40, 255, isWord),
  vendor('npm_', '_', 36, 36, isAlphanumeric),
  ...['dop_v1_', 'doo_v1_', 'dor_v1_'].map(prefix => vendor(prefix, '_', 64, 64, isHex)),
  vendor('hf_', '_', 30, 64, isAlphanumeric),
  ...['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_'].map(prefix =>
    vendor(prefix, '_', 16, 255, isAlphanumeric),
  ),
  vendor('whsec_', '_', 24, 255, unit => isAlphanumeric(unit) || unit === 43 || unit === 47),
  vendor('glsa_', '_', 32, 64, isWord),
  ...['shpat_', 'shpss_', 'shpca_', 'shppa_'].map(prefix => vendor(prefix, '_', 32, 32, isHex)),
  ...['glpat-', 'gldt-', 'glrt-'].map(prefix => vendor(prefix, '-', 20, 255, isDotted)),
  ...['xoxa-', 'xoxb-', 'xoxe-', 'xoxo-', 'xoxp-', 'xoxr-', 'xoxs-', 'xapp-'].map(prefix =>
    vendor(prefix, '-', 20, 255, isBase64url),
  ),
  vendor('sk-', '-', 20, 255, isBase64url),
  vendor('pypi-', '-', 50, 512, isBase64url),
]

function vendor(
  prefix: string,
  trigger: string,
  fewest: number,
  most: number,
  takes: Vendor['takes'],
): Vendor {
  return { prefix, trigger: prefix.indexOf(trigger), fewest, most, takes }
}

/** By the unit before the trigger, or after it if the trigger begins the prefix. */
const byNeighbour: readonly Vendor[][] = Array.from({ length: 128 }, () => [])
for (const one of vendors) {
  const { prefix, trigger } = one
  byNeighbour[prefix.charCodeAt(trigger === 0 ? 1 : trigger - 1)]!.push(one)
}

/** Keys with a prefix of their vendor. */
export const vendorKeys: Detector = {
  types: ['api_key'],
  triggers: 'AS_-',
  after: (before, trigger) =>
    trigger === 'A' || trigger === 'S' || byNeighbour[before & 127]!.some(({ trigger }) => trigger > 0),
  find(units, at, find) {
    const isCapital = isUpper(units[at])
    const neighbour = isCapital ? units[at + 1]! : units[at - 1]!
    const candidates = byNeighbour[neighbour & 127]!
    for (let i = 0; i < candidates.length; i++) {
      const { prefix, trigger, fewest, most, takes } = candidates[i]!
      const start = at - trigger
      if ((trigger === 0) !== isCapital || !isAt(units, start, prefix) || !beginsWord(units, start)) continue
      // No match starts inside a key, so that no part is read again.
      if (units[start - 1] === prefix.charCodeAt(prefix.length - 1)) continue
      const from = start + prefix.length
      let end = from
      while (end - from <= most && takes(units[end])) end++
      if (end - from < fewest || (end - from > most && most < 255) || is(units[end], word)) continue
      if (entropy(units, from, end) < 3) continue
      if (prefix === 'sk-' && !isMixed(units, from, end)) continue
      find.start = start
      find.end = end
      return true
    }
    return false
  },
}

/** Whether a range has letters and digits. */
export function isMixed(units: Uint8Array, start: number, end: number): boolean {
  let bits = 0
  for (let i = start; i < end; i++) bits |= isDigit(units[i]) ? 1 : is(units[i], letter) ? 2 : 0
  return bits === 3
}

const examples = [
  'example',
  'changeme',
  'change-me',
  'change_me',
  'your-',
  'your_',
  'dummy',
  'xxxx',
  '****',
  '....',
]

/** Whether a value is a marked example. */
export function isExample(units: Uint8Array, start: number, end: number): boolean {
  const last = Math.min(end, start + 256)
  for (let i = start; i < last; i++) {
    const unit = lowered(units[i])
    for (let k = 0; k < examples.length; k++) {
      const text = examples[k]!
      if (unit === text.charCodeAt(0) && i + text.length <= end && matchesAt(units, i, text)) return true
    }
  }
  return false
}
