/** A text with settings: a file, or one variable or flag (then without lines). */
export interface Source {
  /** Its name in messages: the path as given, `SVC_LOG_LEVEL`, `--log-level`. */
  readonly name: string
  readonly text: string
  /** Offsets at which lines of `text` begin; empty if places within it are meaningless. */
  readonly lineStarts: readonly number[]
}

/** A range of a source, in UTF-16 units. */
export interface Place {
  readonly source: Source
  readonly start: number
  readonly end: number
}

export interface Scalar {
  readonly type: 'scalar'
  readonly value: string | number | boolean | null
  /** The text of `value`. */
  readonly text: string
  /** From a variable, so the key decides the type: `"80"` may become a number. */
  readonly loose: boolean
  /** Contents of secret files in it. */
  readonly secrets: readonly string[]
  /** A reference in it could not be expanded, which was reported: readers report nothing more. */
  readonly broken?: boolean
  readonly place: Place
}

export interface List {
  readonly type: 'list'
  readonly items: readonly Value[]
  readonly place: Place
}

export interface Entry {
  readonly key: string
  readonly place: Place
  readonly value: Value
}

export interface Mapping {
  readonly type: 'map'
  readonly entries: readonly Entry[]
  readonly place: Place
}

/** A value as written, before its key gives it a type. */
export type Value = Scalar | List | Mapping

export function fileSource(name: string, text: string): Source {
  const lineStarts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lineStarts.push(at + 1)
  return { name, text, lineStarts }
}

/** The value of a variable or a flag. */
export function looseScalar(name: string, text: string): Scalar {
  const place = { source: { name, text, lineStarts: [] }, start: 0, end: text.length }
  return { type: 'scalar', value: text, text, loose: true, secrets: [], place }
}

/** Line and column of an offset, both from 1; zeros if the source has no lines. */
export function lineAndColumn(source: Source, offset: number): [line: number, column: number] {
  const starts = source.lineStarts
  if (starts.length === 0) return [0, 0]
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (starts[middle]! <= offset) low = middle
    else high = middle - 1
  }
  return [low + 1, offset - starts[low]! + 1]
}

export function isBroken(value: Value): boolean {
  return value.type === 'scalar' && value.broken === true
}

/** Contents of all secret files within a value. */
export function secretsIn(value: Value): string[] {
  if (value.type === 'scalar') return [...value.secrets]
  if (value.type === 'list') return value.items.flatMap(secretsIn)
  return value.entries.flatMap(entry => secretsIn(entry.value))
}

/** Describes a value in words that can end a message. Secrets are not repeated. */
export function describe(value: Value, hidden: boolean): string {
  if (value.type === 'list') return 'a list'
  if (value.type === 'map') return 'a map of keys'
  if (value.value === null) return 'nothing'
  if (hidden || value.secrets.length > 0) return 'a secret value (not shown)'
  if (typeof value.value !== 'string')
    return `${typeof value.value === 'number' ? 'the number ' : ''}${value.text}`
  const text = value.text.length > 60 ? `${value.text.slice(0, 57)}...` : value.text
  return `the text ${JSON.stringify(text)}`
}
