// A profile prepared for drawing: nodes in pre-order, in typed arrays, so that a subtree is a range and a row is
// sorted.

import type { FlameDocument } from '../../../src/view/api/ui/documents.ts'

/** Columns of a tree, as in the document. */
export type FlameColumns = Pick<
  FlameDocument,
  'names' | 'files' | 'types' | 'parent' | 'name' | 'file' | 'type' | 'self' | 'sum' | 'base'
>

/** Each node before its children, siblings in their original order. Node 0 is the root. */
export interface FlameTree {
  readonly count: number
  readonly names: readonly string[]
  readonly files: readonly string[]
  readonly types: readonly string[]
  /** -1: none. */
  readonly parent: Int32Array
  /** Index after the last descendant. */
  readonly end: Uint32Array
  readonly depth: Uint16Array
  readonly name: Uint32Array
  readonly file: Uint32Array
  readonly type: Uint32Array
  readonly self: Float64Array
  readonly sum: Float64Array
  /** `sum` in the profile to compare with; undefined without one. */
  readonly base: Float64Array | undefined
  /** Left edge of a node, in the unit of the values. */
  readonly left: Float64Array
  /** Hash of the functions on the path to a node; stable between documents. */
  readonly path: Uint32Array
  /** By depth, an index into `rowNodes`; one more entry than rows. */
  readonly rowStart: Uint32Array
  /** Nodes by depth, from left to right. */
  readonly rowNodes: Uint32Array
}

const deepest = 65_534

export function flameTree(columns: FlameColumns): FlameTree {
  const order = preorder(columns.parent)
  const count = order.length
  const place = new Uint32Array(count)
  for (let at = 0; at < count; at++) place[order[at]!] = at
  const parent = new Int32Array(count)
  for (let at = 0; at < count; at++) parent[at] = at === 0 ? -1 : place[aboveOf(columns.parent, order[at]!)]!
  const taken = <A extends Uint32Array | Float64Array>(from: readonly number[], to: A): A => {
    for (let at = 0; at < count; at++) to[at] = from[order[at]!]!
    return to
  }
  const name = taken(columns.name, new Uint32Array(count))
  const file = taken(columns.file, new Uint32Array(count))
  const sum = taken(columns.sum, new Float64Array(count))
  return {
    count,
    names: columns.names,
    files: columns.files,
    types: columns.types,
    parent,
    name,
    file,
    type: taken(columns.type, new Uint32Array(count)),
    self: taken(columns.self, new Float64Array(count)),
    sum,
    base: columns.base.length === count ? taken(columns.base, new Float64Array(count)) : undefined,
    end: ends(parent),
    left: lefts(parent, sum),
    path: paths(parent, name, columns.names, file, columns.files),
    ...rows(parent),
  }
}

/** The node with this path, -1 for none. */
export function nodeOfPath(tree: FlameTree, path: number): number {
  return tree.path.indexOf(path)
}

/** The merged callees of a function, by its name. Undefined: the function is not in the tree. */
export function callsOf(tree: FlameTree, name: string): FlameTree | undefined {
  const wanted = tree.names.indexOf(name)
  const first = tree.name.indexOf(wanted)
  if (wanted < 0 || first < 0) return undefined
  const merged = new Merged(tree, first)
  for (let at = first; at < tree.count; ) {
    // A recursive call further below counts as one of its calls.
    if (tree.name[at] === wanted) {
      merged.add(at)
      at = tree.end[at]!
    } else at++
  }
  return flameTree(merged.columns())
}

/** Merged trees. */
class Merged {
  readonly #tree: FlameTree
  readonly #children = new Map<number, number>()
  readonly #of: number[]
  readonly #parent = [-1]
  readonly #self = [0]
  readonly #sum = [0]
  readonly #base = [0]

  constructor(tree: FlameTree, root: number) {
    this.#tree = tree
    this.#of = [root]
  }

  add(from: number): void {
    const { parent, end, self, sum, base } = this.#tree
    const to = end[from]!
    const place = new Uint32Array(to - from)
    for (let at = from; at < to; at++) {
      const into = at === from ? 0 : this.#child(place[parent[at]! - from]!, at)
      place[at - from] = into
      this.#self[into]! += self[at]!
      this.#sum[into]! += sum[at]!
      this.#base[into]! += base?.[at] ?? 0
    }
  }

  /** Largest first, which also puts parents before their children. */
  columns(): FlameColumns {
    const { names, files, types, name, file, type, base } = this.#tree
    const order = this.#of.map((_, at) => at)
    order.sort((a, b) => this.#sum[b]! - this.#sum[a]! || a - b)
    const place = new Uint32Array(order.length)
    for (const [at, from] of order.entries()) place[from] = at
    return {
      names,
      files,
      types,
      parent: order.map(at => (at === 0 ? -1 : place[this.#parent[at]!]!)),
      name: order.map(at => name[this.#of[at]!]!),
      file: order.map(at => file[this.#of[at]!]!),
      type: order.map(at => type[this.#of[at]!]!),
      self: order.map(at => this.#self[at]!),
      sum: order.map(at => this.#sum[at]!),
      base: base === undefined ? [] : order.map(at => this.#base[at]!),
    }
  }

  #child(above: number, of: number): number {
    const { names, files, name, file } = this.#tree
    const key = (above * names.length + name[of]!) * files.length + file[of]!
    const known = this.#children.get(key)
    if (known !== undefined) return known
    const made = this.#of.push(of) - 1
    this.#children.set(key, made)
    this.#parent.push(above)
    this.#self.push(0)
    this.#sum.push(0)
    this.#base.push(0)
    return made
  }
}

/** A node without a parent is placed below the root. */
function aboveOf(parent: readonly number[], node: number): number {
  return Math.max(0, parent[node]!)
}

function preorder(parent: readonly number[]): Uint32Array {
  const count = parent.length
  const first = new Uint32Array(count + 1)
  for (let node = 1; node < count; node++) first[aboveOf(parent, node) + 1]!++
  for (let node = 0; node < count; node++) first[node + 1]! += first[node]!
  const children = new Uint32Array(count)
  const next = first.slice()
  for (let node = 1; node < count; node++) children[next[aboveOf(parent, node)]!++] = node
  const order = new Uint32Array(count)
  const waiting = [0]
  for (let at = 0; at < count; at++) {
    const node = waiting.pop()!
    order[at] = node
    for (let i = first[node + 1]! - 1; i >= first[node]!; i--) waiting.push(children[i]!)
  }
  return order
}

function ends(parent: Int32Array): Uint32Array {
  const end = new Uint32Array(parent.length)
  for (let at = parent.length - 1; at >= 0; at--) {
    end[at] = Math.max(end[at]!, at + 1)
    const above = parent[at]!
    if (above >= 0) end[above] = Math.max(end[above]!, end[at]!)
  }
  return end
}

/** Children start at the left edge of their parent; the parent's self value is to their right. */
function lefts(parent: Int32Array, sum: Float64Array): Float64Array {
  const left = new Float64Array(parent.length)
  const next = new Float64Array(parent.length)
  for (let at = 0; at < parent.length; at++) {
    const above = parent[at]!
    if (above >= 0) {
      left[at] = next[above]!
      next[above]! += sum[at]!
    }
    next[at] = left[at]!
  }
  return left
}

function paths(
  parent: Int32Array,
  name: Uint32Array,
  names: readonly string[],
  file: Uint32Array,
  files: readonly string[],
): Uint32Array {
  const ofNames = Uint32Array.from(names, hash)
  const ofFiles = Uint32Array.from(files, hash)
  const path = new Uint32Array(parent.length)
  for (let at = 0; at < parent.length; at++) {
    const above = at === 0 ? 17 : path[parent[at]!]!
    const own = ofNames[name[at]!]! ^ Math.imul(ofFiles[file[at]!]!, 31)
    const mixed = Math.imul(above ^ (above >>> 15), 0x85ebca6b) ^ own
    path[at] = Math.imul(mixed ^ (mixed >>> 13), 0x9e3779b1) >>> 0
  }
  return path
}

/** FNV-1a. */
export function hash(text: string): number {
  let value = 2166136261
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619)
  return value >>> 0
}

function rows(parent: Int32Array): Pick<FlameTree, 'depth' | 'rowStart' | 'rowNodes'> {
  const count = parent.length
  const depth = new Uint16Array(count)
  let most = 0
  for (let at = 1; at < count; at++) {
    depth[at] = Math.min(deepest, depth[parent[at]!]! + 1)
    most = Math.max(most, depth[at]!)
  }
  const rowStart = new Uint32Array(count === 0 ? 1 : most + 2)
  for (let at = 0; at < count; at++) rowStart[depth[at]! + 1]!++
  for (let row = 1; row < rowStart.length; row++) rowStart[row]! += rowStart[row - 1]!
  const rowNodes = new Uint32Array(count)
  const next = rowStart.slice()
  for (let at = 0; at < count; at++) rowNodes[next[depth[at]!]!++] = at
  return { depth, rowStart, rowNodes }
}
