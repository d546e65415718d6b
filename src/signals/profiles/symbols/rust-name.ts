import { RustV0 } from './rust-v0.ts'

/** The maximum of C++ names. */
const longestName = 4096

/**
 * Demangled name of a Rust function, without crate hashes; undefined if it is not one. Supports legacy names
 * (`_ZN…17h<16 hexadecimal digits>E`) and v0 (RFC 2603, `_R…`).
 */
export function rustName(mangled: string): string | undefined {
  if (mangled.length > longestName) return undefined
  if (mangled.startsWith('_R')) return v0Name(mangled)
  if (mangled.startsWith('_ZN')) return legacyName(mangled)
  return undefined
}

/** Suffixes that LLVM appends to copied or split functions (`.llvm.123`, `.cold`) are not part of the name. */
function v0Name(mangled: string): string | undefined {
  const end = mangled.indexOf('.')
  return new RustV0(mangled.slice(2, end < 0 ? undefined : end), longestName).name()
}

const legacyHash = /^h[0-9a-f]{16}$/

function legacyName(mangled: string): string | undefined {
  const parts: string[] = []
  let at = 3
  while (mangled[at] !== 'E') {
    const digits = /^[1-9][0-9]{0,3}/.exec(mangled.slice(at, at + 4))?.[0]
    if (digits === undefined) return undefined
    const start = at + digits.length
    at = start + Number(digits)
    if (at > mangled.length) return undefined
    parts.push(mangled.slice(start, at))
  }
  const hash = parts.pop()
  if (hash === undefined || !isHash(hash) || parts.length === 0) return undefined
  const suffix = mangled.slice(at + 1)
  if (suffix !== '' && !suffix.startsWith('.')) return undefined
  return parts.map(plain).join('::')
}

/** A C++ function may be named `h0000…` too; real hashes have at least five different digits. */
function isHash(part: string): boolean {
  return legacyHash.test(part) && new Set(part.slice(1)).size >= 5
}

const escapes: Readonly<Record<string, string>> = {
  SP: '@',
  BP: '*',
  RF: '&',
  LT: '<',
  GT: '>',
  LP: '(',
  RP: ')',
  C: ',',
}

/** Decodes the escapes of legacy names: `$LT$` and similar, `$u20$`, `..` for `::`. */
function plain(part: string): string {
  const text = part.startsWith('_$') ? part.slice(1) : part
  return text.replace(/\$([A-Z]{1,2}|u[0-9a-f]{1,6})\$|\.\.|\./g, (found, code: string | undefined) => {
    if (found === '..') return '::'
    if (code === undefined) return found
    if (!code.startsWith('u')) return escapes[code] ?? found
    return characterOf(Number.parseInt(code.slice(1), 16)) ?? found
  })
}

function characterOf(code: number): string | undefined {
  const isSurrogate = code >= 0xd800 && code <= 0xdfff
  const isText = code >= 0x20 && code !== 0x7f && code <= 0x10ffff && !isSurrogate
  return isText ? String.fromCodePoint(code) : undefined
}
