/** Code length of each byte in bits (RFC 7541, appendix B). The code is canonical: it follows from the lengths. */
const lengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
]
/** End of string: only its first bits may occur, as padding. */
const endOfString = 256
const endBits = 30

const none = -1
const fault = -2
/** By node of the code's tree and the next four bits: the following node, and the decoded byte (-1: none). */
const nextNode = new Int16Array(256 * 16)
const symbolOf = new Int16Array(256 * 16)
/** 1 for nodes at which a string may end: those on the path of end-of-string, less than 8 bits from the root. */
const mayEnd = new Uint8Array(256)
build()

/**
 * Decodes `source[start, end)` into `target` at `at` and returns the end of the output; -1 if it is malformed or does
 * not fit.
 */
export function decodeHuffman(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  let node = 0
  let to = at
  for (let from = start; from < end; from++) {
    const byte = source[from]!
    let step = (node << 4) | (byte >> 4)
    let symbol = symbolOf[step]!
    if (symbol >= 0) {
      if (to >= target.length) return -1
      target[to++] = symbol
    } else if (symbol === fault) {
      return -1
    }
    step = (nextNode[step]! << 4) | (byte & 15)
    symbol = symbolOf[step]!
    if (symbol >= 0) {
      if (to >= target.length) return -1
      target[to++] = symbol
    } else if (symbol === fault) {
      return -1
    }
    node = nextNode[step]!
  }
  return mayEnd[node] === 1 ? to : -1
}

/** Builds the code's tree, then the transitions of each node for four bits. */
function build(): void {
  const symbols = [...lengths.keys(), endOfString]
  const bits = (symbol: number) => lengths[symbol] ?? endBits
  symbols.sort((a, b) => bits(a) - bits(b) || a - b)
  // A child is a node, or ~symbol.
  const children: [number | undefined, number | undefined][] = [[undefined, undefined]]
  let code = 0
  let length = 0
  for (const symbol of symbols) {
    code *= 2 ** (bits(symbol) - length)
    length = bits(symbol)
    let node = 0
    for (let bit = length - 1; bit > 0; bit--) {
      const side = (code >>> bit) & 1
      let child = children[node]![side]
      if (child === undefined) {
        child = children.push([undefined, undefined]) - 1
        children[node]![side] = child
      }
      node = child
    }
    children[node]![code & 1] = ~symbol
    code++
  }
  for (let node = 0; node < 256; node++)
    for (let nibble = 0; nibble < 16; nibble++) layOut(children, node, nibble)
  for (let node = 0, count = 0; count < 8; count++) {
    mayEnd[node] = 1
    node = children[node]![1]!
  }
}

function layOut(children: readonly (readonly (number | undefined)[])[], start: number, nibble: number): void {
  let node = start
  let found = none
  for (let bit = 3; bit >= 0; bit--) {
    const child = children[node]![(nibble >> bit) & 1]!
    node = Math.max(child, 0)
    if (child < 0) found = ~child === endOfString ? fault : ~child
    if (found === fault) break
  }
  nextNode[start * 16 + nibble] = node
  symbolOf[start * 16 + nibble] = found
}
