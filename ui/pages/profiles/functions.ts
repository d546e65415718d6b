// Functions of a tree: the largest ones, and matches of a search.

import type { FlameTree } from './flame-tree.ts'

export interface FunctionRow {
  readonly key: number
  readonly name: string
  readonly file: string
  readonly type: string
  /** Self value. */
  readonly self: number
  /** With everything that it called; recursion counts once. */
  readonly total: number
  /** `total` in the profile to compare with. */
  readonly base: number
  /** Number of its nodes. */
  readonly places: number
}

export interface Functions {
  /** The largest functions by self value, by total and, in a comparison, by change; largest self value first. */
  readonly rows: readonly FunctionRow[]
  readonly count: number
}

/** The functions at and below a node: the `most` largest by each value. */
export function topFunctions(tree: FlameTree, node: number, most = 100): Functions {
  const totals = new Totals(tree)
  totals.walk(node)
  const rows = totals.rows().filter(({ self, total, base }) => self > 0 || total > 0 || base > 0)
  const kept = new Set<FunctionRow>()
  const keep = (value: (row: FunctionRow) => number) => {
    for (const row of rows.toSorted((a, b) => value(b) - value(a)).slice(0, most)) kept.add(row)
  }
  keep(({ self }) => self)
  keep(({ total }) => total)
  if (tree.base !== undefined) keep(({ total, base }) => Math.abs(total - base))
  return { rows: [...kept].sort((a, b) => b.self - a.self || b.total - a.total), count: rows.length }
}

/** Sums by function: name and file. */
class Totals {
  readonly #tree: FlameTree
  readonly #ids = new Map<number, number>()
  readonly #first: number[] = []
  readonly #self: number[] = []
  readonly #total: number[] = []
  readonly #base: number[] = []
  readonly #places: number[] = []
  /** By function: the node after the outermost call being visited. */
  readonly #until: number[] = []

  constructor(tree: FlameTree) {
    this.#tree = tree
  }

  walk(from: number): void {
    const { end, self, sum, base } = this.#tree
    const to = end[from] ?? 0
    for (let node = from; node < to; node++) {
      const id = this.#idOf(node)
      this.#self[id]! += self[node]!
      this.#places[id]!++
      if (node < this.#until[id]!) continue
      this.#until[id] = end[node]!
      this.#total[id]! += sum[node]!
      this.#base[id]! += base?.[node] ?? 0
    }
  }

  rows(): FunctionRow[] {
    const { names, files, types, name, file, type } = this.#tree
    return this.#first.map((node, id) => ({
      key: id,
      name: names[name[node]!]!,
      file: files[file[node]!]!,
      type: types[type[node]!]!,
      self: this.#self[id]!,
      total: this.#total[id]!,
      base: this.#base[id]!,
      places: this.#places[id]!,
    }))
  }

  #idOf(node: number): number {
    const { name, file, files } = this.#tree
    const key = name[node]! * files.length + file[node]!
    const known = this.#ids.get(key)
    if (known !== undefined) return known
    const id = this.#first.push(node) - 1
    this.#ids.set(key, id)
    this.#self.push(0)
    this.#total.push(0)
    this.#base.push(0)
    this.#places.push(0)
    this.#until.push(0)
    return id
  }
}

export interface Matches {
  /** By node: 1 if it matches. */
  readonly nodes: Uint8Array
  readonly functions: number
  /** Sum of matches at and below a node, each stack once. */
  readonly sum: number
}

/**
 * Functions whose name or file contains the text, case-insensitive; text in quotes must equal the name. Undefined: no
 * search.
 */
export function matching(tree: FlameTree, text: string, node: number): Matches | undefined {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return undefined
  const whole = /^"(.+)"$/.exec(wanted)?.[1]
  const contains =
    whole === undefined ? (name: string) => name.includes(wanted) : (name: string) => name === whole
  const inNames = Uint8Array.from(tree.names, name => (contains(name.toLowerCase()) ? 1 : 0))
  const inFiles = Uint8Array.from(tree.files, file =>
    whole === undefined && contains(file.toLowerCase()) ? 1 : 0,
  )
  const nodes = new Uint8Array(tree.count)
  const functions = new Set<number>()
  const end = tree.end[node] ?? 0
  let sum = 0
  let until = 0
  for (let at = 0; at < tree.count; at++) {
    if (inNames[tree.name[at]!] === 0 && inFiles[tree.file[at]!] === 0) continue
    nodes[at] = 1
    if (at < node || at >= end) continue
    functions.add(tree.name[at]! * tree.files.length + tree.file[at]!)
    if (at < until) continue
    until = tree.end[at]!
    sum += tree.sum[at]!
  }
  return { nodes, functions: functions.size, sum }
}
