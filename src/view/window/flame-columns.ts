import { noText, noType, rootNode, type StackTrie, typeEnd } from './stack-trie.ts'

/** A tree in columns: node 0 is the root, parents precede their children, siblings are sorted largest first. */
export interface FlameColumns {
  total: number
  base_total: number
  names: string[]
  files: string[]
  types: string[]
  /** -1: none. */
  parent: number[]
  /** Indexes into `names`, `files` and `types`. */
  name: number[]
  file: number[]
  type: number[]
  self: number[]
  sum: number[]
  /** `sum` in the profile to compare with; empty without one. */
  base: number[]
  /** Total value of the omitted nodes. */
  cut: number
  /** Largest first. */
  missing: { reason: string; value: number }[]
}

export interface FlameValues {
  /** By trie node. */
  readonly self: Float64Array
  readonly base: Float64Array | undefined
  /** Node to use as root; all values are at or below it. */
  readonly root: number
  readonly rootName: string
  /** Maximum number of nodes. */
  readonly limit: number
}

const mostReasons = 20
/** Sign, exponent and four bits of the fraction. */
const leadingBits = 16
/** Ancestors to check for the same reason of a missing name. */
const mostAsked = 32

/** The tree of the nodes with values. Its cost depends only on the size of the trie. */
export function flameColumns(trie: StackTrie, values: FlameValues): FlameColumns {
  const tree = new ValuedTree(trie, values)
  const keeps = tree.largest(Math.max(1, values.limit))
  return tree.columns(keeps, values.rootName)
}

/** The nodes with values and their ancestors. Parents have lower numbers than their children. */
class ValuedTree {
  readonly #trie: StackTrie
  readonly #hasBase: boolean
  /** By number in this tree: the number in the trie. */
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

  /** Marks the largest nodes, always with their parents. Undefined: all of them. */
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

  /** Assigns a number to a node that has none. */
  #place(node: number, places: Int32Array): number {
    const at = this.#size++
    places[node] = at
    this.#nodes[at] = node
    return at
  }

  /** Assigns numbers to a node and its ancestors without one, the uppermost first. */
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

  /** Weights, none larger than that of the parent. */
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

  /** Share of the total with unnamed frames, by reason. A stack counts once for each reason. */
  #missing(): FlameColumns['missing'] {
    const trie = this.#trie
    const names = new ReasonNames(trie)
    /** The nearest unnamed node, itself included; -1: none. */
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

/** Which names are reasons for a missing name: those in square brackets. */
class ReasonNames {
  readonly #trie: StackTrie
  /** By text: 1 if it is one, 2 if not. */
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

/** Texts in order of first use, by number. */
class Listed {
  readonly all: string[] = []
  /** Index plus one. */
  readonly #places: Uint32Array
  readonly #text: (number: number) => string

  constructor(end: number, text: (number: number) => string) {
    this.#places = new Uint32Array(end)
    this.#text = text
  }

  /** Adds a text that has no number. */
  add(text: string): number {
    return this.all.push(text) - 1
  }

  of(number: number): number {
    if (this.#places[number] === 0) this.#places[number] = this.all.push(this.#text(number))
    return this.#places[number]! - 1
  }
}

/** The n-th largest of positive numbers: sorts only those that share its leading bits. */
function nthLargest(values: Float64Array, n: number): number {
  // Non-negative IEEE 754 numbers sort like their bits; the system is little-endian.
  const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2)
  const counts = new Uint32Array(1 << leadingBits)
  for (let i = 1; i < halves.length; i += 2) counts[halves[i]! >>> (32 - leadingBits)]!++
  let left = n
  let bucket = counts.length - 1
  while (counts[bucket]! < left) left -= counts[bucket--]!
  const near = values.filter((_, i) => halves[2 * i + 1]! >>> (32 - leadingBits) === bucket).sort()
  return near[near.length - left]!
}
