import { noText, noType, rootNode, type StackTrie, typeEnd } from './stack-trie.ts'

/**
 * A tree in columns: node 0 is the root, parents stand before their children, children of one parent with the largest
 * first.
 */
export interface FlameColumns {
  total: number
  base_total: number
  names: string[]
  files: string[]
  types: string[]
  /** -1: none. */
  parent: number[]
  /** Into `names`, `files` and `types`. */
  name: number[]
  file: number[]
  type: number[]
  self: number[]
  sum: number[]
  /** `sum` in what it is compared with; empty without that. */
  base: number[]
  /** Sum of what was left out. */
  cut: number
  /** The largest first. */
  missing: { reason: string; value: number }[]
}

export interface FlameValues {
  /** By node of the trie. */
  readonly self: Float64Array
  readonly base: Float64Array | undefined
  /** The node that is to be the root; all values are at or below it. */
  readonly root: number
  readonly rootName: string
  /** Nodes at most. */
  readonly limit: number
}

const mostReasons = 20
/** Sign, exponent and four bits of the fraction. */
const leadingBits = 16
/** Frames above a frame that are asked whether they lack a name for the same reason. */
const mostAsked = 32

/** The tree of the nodes that have values. Takes time by the size of the trie, and by nothing else. */
export function flameColumns(trie: StackTrie, values: FlameValues): FlameColumns {
  const tree = new ValuedTree(trie, values)
  const keeps = tree.largest(Math.max(1, values.limit))
  return tree.columns(keeps, values.rootName)
}

/** The nodes that have values, and all above them. Parents have lower numbers than their children. */
class ValuedTree {
  readonly #trie: StackTrie
  readonly #hasBase: boolean
  /** By number here: the number in the trie. */
  readonly #nodes: Uint32Array
  readonly #parent: Int32Array
  readonly #self: Float64Array
  readonly #sum: Float64Array
  readonly #base: Float64Array
  #size = 0

  constructor(trie: StackTrie, { self, base, root }: FlameValues) {
    this.#trie = trie
    this.#hasBase = base !== undefined
    const places = new Int32Array(trie.end).fill(-1)
    this.#nodes = new Uint32Array(trie.nodes)
    this.#parent = new Int32Array(trie.nodes)
    this.#parent[this.#place(root, places)] = -1
    for (let node = rootNode; node < trie.end; node++)
      if (self[node]! > 0 || (base !== undefined && base[node]! > 0)) this.#placeAll(node, places)
    this.#self = new Float64Array(this.#size)
    this.#base = new Float64Array(base === undefined ? 0 : this.#size)
    for (let at = 0; at < this.#size; at++) {
      const node = this.#nodes[at]!
      this.#self[at] = self[node]!
      if (base !== undefined) this.#base[at] = base[node]!
    }
    this.#sum = this.#self.slice()
    for (let at = this.#size - 1; at > 0; at--) {
      const above = this.#parent[at]!
      this.#sum[above]! += this.#sum[at]!
      if (base !== undefined) this.#base[above]! += this.#base[at]!
    }
  }

  /** Which nodes are among the largest, so that the parent of each is, too. Undefined: all are. */
  largest(limit: number): Uint8Array | undefined {
    const size = this.#size
    if (size <= limit) return undefined
    const weights = this.#weights()
    const least = nthLargest(weights, limit)
    let equal = limit
    for (let at = 0; at < size; at++) if (weights[at]! > least) equal--
    const keeps = new Uint8Array(size)
    for (let at = 0; at < size; at++)
      if (weights[at]! > least || (weights[at] === least && equal-- > 0)) keeps[at] = 1
    return keeps
  }

  columns(keeps: Uint8Array | undefined, rootName: string): FlameColumns {
    const order = this.#preorder(keeps)
    const size = order.length
    const trie = this.#trie
    const textOf = (text: number) => trie.text(text)
    const names = new Listed(trie.textEnd, textOf)
    const files = new Listed(trie.textEnd, textOf)
    const types = new Listed(typeEnd, type => trie.typeName(type))
    const frameOf = (at: number) => trie.frames[this.#nodes[at]!]!
    const places = new Int32Array(this.#size)
    const columns: FlameColumns = {
      total: this.#sum[0]!,
      base_total: this.#hasBase ? this.#base[0]! : 0,
      names: names.all,
      files: files.all,
      types: types.all,
      parent: new Array<number>(size),
      name: new Array<number>(size),
      file: new Array<number>(size),
      type: new Array<number>(size),
      self: new Array<number>(size),
      sum: new Array<number>(size),
      base: new Array<number>(this.#hasBase ? size : 0),
      cut: this.#cut(keeps),
      missing: this.#missing(),
    }
    columns.parent[0] = -1
    columns.name[0] = names.add(rootName)
    columns.file[0] = files.of(noText)
    columns.type[0] = types.of(noType)
    for (let i = 0; i < size; i++) {
      const at = order[i]!
      columns.self[i] = this.#self[at]!
      columns.sum[i] = this.#sum[at]!
      if (this.#hasBase) columns.base[i] = this.#base[at]!
      places[at] = i
      if (i === 0) continue
      const frame = frameOf(at)
      columns.parent[i] = places[this.#parent[at]!]!
      columns.name[i] = names.of(trie.nameOf(frame))
      columns.file[i] = files.of(trie.fileOf(frame))
      columns.type[i] = types.of(trie.typeOf(frame))
    }
    return columns
  }

  /** A number for a node that has none. */
  #place(node: number, places: Int32Array): number {
    const at = this.#size++
    places[node] = at
    this.#nodes[at] = node
    return at
  }

  /** Numbers for a node and those above it that have none, the uppermost first. */
  #placeAll(node: number, places: Int32Array): void {
    const { parents } = this.#trie
    const from = this.#size
    for (let at = node; places[at]! < 0; at = parents[at]!) this.#place(at, places)
    this.#nodes.subarray(from, this.#size).reverse()
    for (let at = from; at < this.#size; at++) {
      const placed = this.#nodes[at]!
      places[placed] = at
      this.#parent[at] = places[parents[placed]!]!
    }
  }

  /** No node weighs more than its parent. */
  #weights(): Float64Array {
    if (!this.#hasBase) return this.#sum
    return this.#sum.map((sum, at) => sum + this.#base[at]!)
  }

  #cut(keeps: Uint8Array | undefined): number {
    let cut = 0
    if (keeps !== undefined)
      for (let at = 1; at < this.#size; at++)
        if (keeps[at] === 0 && keeps[this.#parent[at]!] === 1) cut += this.#sum[at]!
    return cut
  }

  /** Each node before its children, siblings by size. */
  #preorder(keeps: Uint8Array | undefined): Uint32Array {
    const size = this.#size
    const first = new Uint32Array(size + 1)
    let kept = 1
    for (let at = 1; at < size; at++) {
      if (keeps !== undefined && keeps[at] === 0) continue
      first[this.#parent[at]! + 1]!++
      kept++
    }
    for (let at = 0; at < size; at++) first[at + 1]! += first[at]!
    const children = new Uint32Array(kept)
    const next = first.slice()
    for (let at = 1; at < size; at++)
      if (keeps === undefined || keeps[at] === 1) children[next[this.#parent[at]!]!++] = at
    const order = new Uint32Array(kept)
    const stack = [0]
    for (let i = 0; i < kept; i++) {
      const at = stack.pop()!
      order[i] = at
      const from = first[at]!
      const to = first[at + 1]!
      if (to - from > 1) children.subarray(from, to).sort(this.#bySize)
      for (let child = to - 1; child >= from; child--) stack.push(children[child]!)
    }
    return order
  }

  readonly #bySize = (a: number, b: number): number =>
    this.#sum[b]! - this.#sum[a]! || (this.#hasBase ? this.#base[b]! - this.#base[a]! : 0) || a - b

  /** How much of the total has frames without names, by the reason. A stack counts once to each. */
  #missing(): FlameColumns['missing'] {
    const trie = this.#trie
    const names = new ReasonNames(trie)
    /** The nearest node that is unnamed, itself included; -1: none. */
    const nearest = new Int32Array(this.#size).fill(-1)
    const sums = new Map<number, number>()
    for (let at = 1; at < this.#size; at++) {
      const above = nearest[this.#parent[at]!]!
      nearest[at] = above
      const frame = trie.frames[this.#nodes[at]!]!
      const name = trie.nameOf(frame)
      if (trie.isService(frame) || !names.isReason(name)) continue
      nearest[at] = at
      if (!this.#isBelow(above, name, nearest)) sums.set(name, (sums.get(name) ?? 0) + this.#sum[at]!)
    }
    const missing = [...sums]
      .filter(([, value]) => value > 0)
      .sort(([, a], [, b]) => b - a)
      .map(([name, value]) => ({ reason: trie.text(name).slice(1, -1), value }))
    return missing.slice(0, mostReasons)
  }

  /** Whether one of the unnamed nodes from `at` upwards has this name. */
  #isBelow(at: number, name: number, nearest: Int32Array): boolean {
    for (let asked = 0; at >= 0 && asked < mostAsked; asked++) {
      if (this.#trie.nameOf(this.#trie.frames[this.#nodes[at]!]!) === name) return true
      at = nearest[this.#parent[at]!]!
    }
    return false
  }
}

/** Which names are reasons why there is no name: those in square brackets. */
class ReasonNames {
  readonly #trie: StackTrie
  /** By text: 1, it is one; 2, it is none. */
  readonly #known: Uint8Array

  constructor(trie: StackTrie) {
    this.#trie = trie
    this.#known = new Uint8Array(trie.textEnd)
  }

  isReason(name: number): boolean {
    if (this.#known[name] === 0) {
      const text = this.#trie.text(name)
      this.#known[name] = text.startsWith('[') && text.endsWith(']') ? 1 : 2
    }
    return this.#known[name] === 1
  }
}

/** Texts in the order in which they are first asked for, by their numbers. */
class Listed {
  readonly all: string[] = []
  /** Place plus one. */
  readonly #places: Uint32Array
  readonly #text: (number: number) => string

  constructor(end: number, text: (number: number) => string) {
    this.#places = new Uint32Array(end)
    this.#text = text
  }

  /** One that has no number. */
  add(text: string): number {
    return this.all.push(text) - 1
  }

  of(number: number): number {
    if (this.#places[number] === 0) this.#places[number] = this.all.push(this.#text(number))
    return this.#places[number]! - 1
  }
}

/** The n-th largest of positive numbers: only those that share its leading bits are sorted. */
function nthLargest(values: Float64Array, n: number): number {
  // IEEE 754 numbers from zero on are in the order of their bits; the system is little-endian.
  const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2)
  const counts = new Uint32Array(1 << leadingBits)
  for (let i = 1; i < halves.length; i += 2) counts[halves[i]! >>> (32 - leadingBits)]!++
  let left = n
  let bucket = counts.length - 1
  while (counts[bucket]! < left) left -= counts[bucket--]!
  const near = values.filter((_, i) => halves[2 * i + 1]! >>> (32 - leadingBits) === bucket).sort()
  return near[near.length - left]!
}
