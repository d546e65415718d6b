import { is, letter, lowered, matchesAt } from './characters.ts'

/** Kind of secret after a name. */
export type SecretKind = 'password' | 'api_key' | 'auth_header'

interface SecretName {
  /** Lower case, without separators. */
  readonly text: string
  readonly kind: SecretKind
  /** Short names match only at the start of a word: `compass` is not a password. */
  readonly whole: boolean
}

/** Names end with one of these: `db_password`, `X-Auth-Token`, `clientSecret`. Longer ones precede shorter ones. */
const names: readonly SecretName[] = [
  { text: 'proxyauthorization', kind: 'auth_header', whole: true },
  { text: 'authorization', kind: 'auth_header', whole: true },
  { text: 'setcookie', kind: 'auth_header', whole: true },
  { text: 'cookie', kind: 'auth_header', whole: true },
  { text: 'xapikey', kind: 'auth_header', whole: true },
  { text: 'password', kind: 'password', whole: false },
  { text: 'passwd', kind: 'password', whole: false },
  { text: 'passphrase', kind: 'password', whole: false },
  { text: 'passcode', kind: 'password', whole: false },
  { text: 'pwd', kind: 'password', whole: true },
  { text: 'pass', kind: 'password', whole: true },
  { text: 'pw', kind: 'password', whole: true },
  { text: 'apikey', kind: 'api_key', whole: false },
  { text: 'accesskey', kind: 'api_key', whole: false },
  { text: 'accesskeyid', kind: 'api_key', whole: false },
  { text: 'secretkey', kind: 'api_key', whole: false },
  { text: 'privatekey', kind: 'api_key', whole: false },
  { text: 'accountkey', kind: 'api_key', whole: false },
  { text: 'authkey', kind: 'api_key', whole: false },
  { text: 'signingkey', kind: 'api_key', whole: false },
  { text: 'encryptionkey', kind: 'api_key', whole: false },
  { text: 'token', kind: 'api_key', whole: false },
  { text: 'secret', kind: 'api_key', whole: false },
  { text: 'credential', kind: 'api_key', whole: false },
  { text: 'credentials', kind: 'api_key', whole: false },
  { text: 'bearer', kind: 'api_key', whole: true },
  { text: 'signature', kind: 'api_key', whole: true },
  { text: 'sig', kind: 'api_key', whole: true },
]

/** Names by last letter, which most words of a text do not share. */
const byLastLetter: readonly SecretName[][] = Array.from({ length: 26 }, () => [])
for (const name of names) byLastLetter[name.text.charCodeAt(name.text.length - 1) - 97]!.push(name)

/** Kind of secret indicated by a name that ends before `end`; undefined for none. */
export function secretNamed(units: Uint8Array, end: number): SecretKind | undefined {
  const last = lowered(units[end - 1]) - 97
  if (last < 0 || last > 25) return undefined
  const candidates = byLastLetter[last]!
  for (let i = 0; i < candidates.length; i++) {
    const { text, kind, whole } = candidates[i]!
    const start = nameStart(units, end, text)
    if (start > 0 && !(whole && continuesWord(units, start))) {
      // The shell's name of the working directory.
      if (text === 'pwd' && units[end - 1] === 68) return undefined
      return kind
    }
  }
  return undefined
}

/** Start of the name that ends before `end`, with single separators between its letters; 0 if it is another name. */
function nameStart(units: Uint8Array, end: number, text: string): number {
  let at = end
  for (let i = text.length - 1; i >= 0; i--) {
    at--
    if (i < text.length - 1 && isJoint(units[at])) at--
    if (lowered(units[at]) !== text.charCodeAt(i)) return 0
  }
  return at
}

function isJoint(unit: number | undefined): boolean {
  return unit === 95 || unit === 45 || unit === 46 || unit === 32
}

/** Whether a word begins before `start`. A capital letter after a small one begins a new word. */
function continuesWord(units: Uint8Array, start: number): boolean {
  return is(units[start - 1], letter) && !(units[start]! < 97 && units[start - 1]! >= 97)
}

/** Headers with secrets have attribute names of their own (semantic conventions: http.request.header.<key>). */
const headerKey = /^(?:http\.(?:request|response)\.header\.|rpc\.[a-z_]+\.(?:request|response)\.metadata\.)/

/** Kind of secret indicated by the last part of an attribute key. Called once per key. */
export function secretKey(key: string): SecretKind | undefined {
  const name = key.slice(key.search(/[^./]*$/))
  const plain = name.toLowerCase().replace(/[-_]/g, '')
  for (const { text, kind, whole } of names) {
    if (!plain.endsWith(text)) continue
    if (plain === text) return kind
    if (!whole) return kind
    const before = name[name.length - text.length - 1]
    if (kind !== 'auth_header' && (before === '_' || before === '-')) return kind
  }
  return headerKey.test(key) && plain.endsWith('auth') ? 'auth_header' : undefined
}

/** Schemes before a value in authorization headers (RFC 9110, 11.6.2). */
const schemes = ['bearer ', 'basic ', 'token ', 'digest ', 'negotiate ', 'apikey ', 'hmac ']

/** Length of the scheme at `at`, with its space; 0 if there is none. */
export function schemeLength(units: Uint8Array, at: number): number {
  for (let i = 0; i < schemes.length; i++) if (matchesAt(units, at, schemes[i]!)) return schemes[i]!.length
  return 0
}
