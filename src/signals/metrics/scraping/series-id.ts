// Two 32-bit hashes, mixed as in MurmurHash3.
let one = 0
let other = 0

/**
 * Number that identifies a series: never 0, the same for the same name and labels in any order. It has 53 bits, so
 * collisions are very unlikely.
 */
export function seriesId(name: string, labels: ReadonlyMap<string, string>): number {
  hash(name, '')
  let low = one
  let high = other
  for (const [label, value] of labels) {
    hash(label, value)
    low = (low + one) | 0
    high = (high + other) | 0
  }
  return (high & 0x1fffff) * 2 ** 32 + (low >>> 0) || 1
}

function hash(label: string, value: string): void {
  one = 0x9e3779b9
  other = 0x41c6ce57
  add(label)
  // Not a UTF-16 unit, so that label and value cannot be confused.
  one = Math.imul(one ^ 0x10000, 0x9e3779b1)
  other = Math.imul(other ^ 0x10000, 0x5f356495)
  add(value)
  one = Math.imul(one ^ (one >>> 16), 0x85ebca6b) ^ Math.imul(other ^ (other >>> 13), 0xc2b2ae35)
  other = Math.imul(other ^ (other >>> 16), 0x85ebca6b) ^ Math.imul(one ^ (one >>> 13), 0xc2b2ae35)
}

function add(text: string): void {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    one = Math.imul(one ^ unit, 0x9e3779b1)
    other = Math.imul(other ^ unit, 0x5f356495)
  }
}
