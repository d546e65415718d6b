// RFC 3492, section 5.
const base = 36
const least = 1
const most = 26
const skew = 38
const damp = 700
const firstBias = 72
const firstCode = 128

/**
 * Decodes a Rust identifier with non-ASCII characters: Punycode (RFC 3492) with `_` as delimiter. Undefined if invalid.
 */
export function punycoded(text: string): string | undefined {
  const delimiter = text.lastIndexOf('_')
  const codes = Array.from(text.slice(0, Math.max(0, delimiter)), character => character.charCodeAt(0))
  let code = firstCode
  let bias = firstBias
  let place = 0
  for (let at = delimiter + 1; at < text.length; ) {
    const before = place
    let weight = 1
    for (let k = base; ; k += base) {
      const digit = digitOf(text.charCodeAt(at++))
      if (digit === undefined) return undefined
      place += digit * weight
      const threshold = Math.min(most, Math.max(least, k - bias))
      if (digit < threshold) break
      weight *= base - threshold
    }
    const length = codes.length + 1
    bias = adapted(place - before, length, before === 0)
    code += Math.floor(place / length)
    place %= length
    if (!(code <= 0x10ffff) || (code >= 0xd800 && code <= 0xdfff)) return undefined
    codes.splice(place++, 0, code)
  }
  return String.fromCodePoint(...codes)
}

function adapted(delta: number, length: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? damp : 2))
  rest += Math.floor(rest / length)
  let k = 0
  for (; rest > ((base - least) * most) / 2; k += base) rest = Math.floor(rest / (base - least))
  return k + Math.floor(((base - least + 1) * rest) / (rest + skew))
}

function digitOf(character: number): number | undefined {
  if (character >= 97 && character <= 122) return character - 97
  if (character >= 48 && character <= 57) return character - 48 + 26
  return undefined
}
