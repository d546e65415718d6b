// Looks up places in a source map (ECMA-426). Node's `SourceMap` creates objects for all 40,000 segments of our bundle
// and leaves the process 22 MB larger; this scans the text once and keeps nothing.

/** A place in generated code, from 0. */
export interface GeneratedPlace {
  readonly line: number
  readonly column: number
}

export interface OriginalPlace {
  /** As in the map. */
  readonly source: string
  /** From 0. */
  readonly line: number
  /** Names that the bundler replaced here and right before. */
  readonly names: readonly string[]
}

/**
 * For each place the original of the nearest preceding mapping on its line, or undefined if there is none. Throws if
 * `text` is no source map; ignores mappings after a malformed one.
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

/** Scans the segments of `mappings` once, without allocating: there are tens of thousands. */
class MappingWalk {
  /** Of the current segment: indexes and a line from 0. */
  source = 0
  line = 0
  /** -1: none. */
  name = -1
  /** Name of the previous segment. */
  nameBefore = -1
  readonly #text: string
  #at = 0
  #generatedLine = 0
  /** The current segment is on the requested line and has an original. */
  #mapped = false
  /** Generated column, source, line, column, name: segments contain differences. */
  readonly #sums = [0, 0, 0, 0, 0]
  readonly #segment = [0, 0, 0, 0, 0]
  #fields = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Moves to the last segment at or before a place; true if there is one on that line with an original. */
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

  /**
   * Reads the next segment, 1, 4 or 5 numbers in base 64, into `#segment` and returns its end. No fields: malformed.
   */
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
