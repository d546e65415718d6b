// Looks places up in a source map (ECMA-426). Node's own `SourceMap` makes objects of all 40,000 segments of our bundle
// and so leaves the process 22 MB larger; this one walks the text once and keeps nothing.

/** A place in generated code, from 0. */
export interface GeneratedPlace {
  readonly line: number
  readonly column: number
}

export interface OriginalPlace {
  /** As the map has it. */
  readonly source: string
  /** From 0. */
  readonly line: number
  /** Names that the bundler replaced here and right before. */
  readonly names: readonly string[]
}

/**
 * For each place the original of the nearest mapping before it on its line, or undefined where there is none.
 * Throws where `text` is no source map; mappings behind a malformed one are not seen.
 */
export function originalPlaces(
  text: string,
  places: readonly GeneratedPlace[],
): (OriginalPlace | undefined)[] {
  const map = JSON.parse(text) as { mappings?: unknown; sources?: unknown; names?: unknown }
  const { mappings, sources, names } = map
  if (typeof mappings !== 'string' || !Array.isArray(sources) || !Array.isArray(names))
    throw new Error('not a source map')
  const walk = new MappingWalk(mappings)
  const order = places.map((_, index) => index).sort((a, b) => compare(places[a]!, places[b]!))
  const found: (OriginalPlace | undefined)[] = places.map(() => undefined)
  for (const index of order) {
    const { line, column } = places[index]!
    if (!walk.to(line, column)) continue
    const near = [walk.name, walk.nameBefore].filter(name => name >= 0)
    found[index] = {
      source: String(sources[walk.source] ?? ''),
      line: walk.line,
      names: near.map(name => String(names[name] ?? '')),
    }
  }
  return found
}

/** Goes through the segments of `mappings` once, and allocates nothing: there are tens of thousands. */
class MappingWalk {
  /** Of the segment where it stands: indices and a line from 0. */
  source = 0
  line = 0
  /** -1: it has none. */
  name = -1
  /** Of the segment before. */
  nameBefore = -1
  readonly #text: string
  #at = 0
  #generatedLine = 0
  /** It stands on a segment of this line that has an original. */
  #mapped = false
  /** Generated column, source, line, column, name: segments give what is to be added. */
  readonly #sums = [0, 0, 0, 0, 0]
  readonly #segment = [0, 0, 0, 0, 0]
  #fields = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Goes on to the last segment at or before a place: whether there is one, with an original, on that line. */
  to(line: number, column: number): boolean {
    const text = this.#text
    while (this.#at < text.length) {
      const char = text.charCodeAt(this.#at)
      if (char === comma) this.#at++
      else if (char === semicolon) {
        if (this.#generatedLine >= line) break
        this.#at++
        this.#generatedLine++
        this.#sums[0] = 0
        this.#mapped = false
        this.name = this.nameBefore = -1
      } else {
        const end = this.#read()
        if (this.#fields === 0) this.#at = text.length
        else if (this.#generatedLine === line && this.#sums[0]! + this.#segment[0]! > column) break
        else this.#enter(end)
      }
    }
    return this.#mapped && this.#generatedLine === line
  }

  #enter(end: number): void {
    for (let field = 0; field < this.#fields; field++) this.#sums[field]! += this.#segment[field]!
    this.#at = end
    this.#mapped = this.#fields > 1 && this.#sums[1]! >= 0 && this.#sums[2]! >= 0
    this.source = this.#sums[1]!
    this.line = this.#sums[2]!
    this.nameBefore = this.name
    this.name = this.#fields === 5 ? this.#sums[4]! : -1
  }

  /** Reads the next segment, 1, 4 or 5 numbers of base 64 digits, into `#segment`: where it ends. No fields: malformed. */
  #read(): number {
    const text = this.#text
    this.#fields = 0
    let value = 0
    let shift = 0
    let at = this.#at
    for (; at < text.length; at++) {
      const char = text.charCodeAt(at)
      if (char === comma || char === semicolon) break
      const digit = char < 128 ? digits[char]! : -1
      if (digit < 0 || shift > 30 || this.#fields > 4) {
        this.#fields = 0
        return at
      }
      value += (digit & 31) * 2 ** shift
      shift += 5
      if (digit & 32) continue
      this.#segment[this.#fields++] = value % 2 === 1 ? -Math.floor(value / 2) : value / 2
      value = 0
      shift = 0
    }
    if (shift > 0 || (this.#fields !== 1 && this.#fields !== 4 && this.#fields !== 5)) this.#fields = 0
    return at
  }
}

const comma = 44
const semicolon = 59
const digits = new Int8Array(128).fill(-1)
for (const [value, char] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries())
  digits[char.charCodeAt(0)] = value

function compare(a: GeneratedPlace, b: GeneratedPlace): number {
  return a.line - b.line || a.column - b.column
}
