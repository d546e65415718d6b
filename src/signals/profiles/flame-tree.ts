// The stacks of a recording as one tree in flat arrays: the source of flame graphs, tables and pages.

import type { Frame, FrameType, Sample } from '../../foundation/model/profile.ts'
import { isUnnamed, printable } from './frame-text.ts'

/** Default maximum of nodes. */
export const mostTreeNodes = 20_000
/** Name of merged small nodes. */
export const otherName = '[other]'

/** Frame types by their number in a tree; 0 means none. */
export const frameTypes: readonly ('' | FrameType)[] = [
  '',
  'native',
  'kernel',
  'go',
  'rust',
  'cpython',
  'v8js',
  'jvm',
  'ruby',
  'php',
  'perl',
  'dotnet',
  'beam',
  'luajit',
]

/**
 * Nodes in pre-order, larger siblings first; node 0 is the root and its own parent. Its children are process groups.
 * The arrays are parallel.
 */
export interface FlameTree {
  readonly strings: readonly string[]
  readonly parent: Uint32Array
  /** Index into `strings`. */
  readonly name: Uint32Array
  readonly file: Uint32Array
  /** Index into `frameTypes`. */
  readonly type: Uint8Array
  readonly self: Float64Array
  readonly total: Float64Array
  /** Part of the total whose innermost frame has no name. */
  readonly unnamed: number
}

/** Maximum nodes during construction; if reached, the smallest half is merged. */
const mostNodes = 1 << 17
const mostFrames = 1 << 17
const mostDepth = 1024
/** Maximum frames looked up by object identity. */
const mostKnown = 1 << 16

const otherFrame = 0

/** Builds a tree from samples. Memory is bounded for any input. */
export class FlameTreeBuilder {
  readonly #strings = new Map<string, number>()
  /** Frame id by name, file and type, encoded as one number. */
  readonly #frames = new Map<number, number>()
  readonly #known = new Map<Frame, number>()
  readonly #names: number[] = []
  readonly #files: number[] = []
  readonly #types: number[] = []
  readonly #path = new Uint32Array(mostDepth)
  #nodes = new Nodes()
  #unnamed = 0

  constructor(rootName: string) {
    this.#frame(otherName, '', 0)
    this.#nodes.child(0, this.#frame(rootName, '', 0))
  }

  /** Group id for `add`. */
  group(service: string, executable: string): number {
    return this.#frame(service, executable, 0)
  }

  /** Adds a sample to its group. Ignores values that are not positive. */
  add(group: number, { frames, value: exact }: Sample): void {
    // Sums of whole numbers do not depend on the order, so no child is larger than its parent.
    const value = Math.round(exact)
    if (!(value > 0 && value <= Number.MAX_SAFE_INTEGER)) return
    let nodes = this.#nodes
    if (nodes.size + mostDepth > mostNodes) {
      nodes = nodes.pruned(mostNodes / 2)
      this.#nodes = nodes
    }
    const path = this.#path
    let depth = 0
    path[depth++] = nodes.child(0, group)
    // Reserves room for the root, and for the frame that replaces the rest of a deeper stack.
    for (let i = frames.length - 1; i >= 0 && depth < mostDepth - 2; i--, depth++)
      path[depth] = nodes.child(path[depth - 1]!, this.#idOf(frames[i]!))
    if (frames.length > mostDepth - 3) {
      path[depth] = nodes.child(path[depth - 1]!, otherFrame)
      depth++
    }
    nodes.total[0]! += value
    for (let i = 0; i < depth; i++) nodes.total[path[i]!]! += value
    nodes.self[path[depth - 1]!]! += value
    if (frames.length > 0 && isUnnamed(frames[0]!.name)) this.#unnamed += value
  }

  /** Tree of all samples, reduced to at most `most` nodes (3 or more) by merging the smallest. */
  finish(most = mostTreeNodes): FlameTree {
    const nodes = this.#nodes.size > most ? this.#nodes.pruned(most) : this.#nodes
    const texts = [...this.#strings.keys()]
    const order = nodes.preorder(node => texts[this.#names[nodes.frame[node]!]!]!)
    const { size } = nodes
    const place = new Uint32Array(size)
    for (let i = 0; i < size; i++) place[order[i]!] = i
    const strings: string[] = []
    const placeOfString = new Map<number, number>()
    const stringAt = (string: number) => {
      let at = placeOfString.get(string)
      if (at === undefined) {
        at = strings.length
        placeOfString.set(string, at)
        strings.push(texts[string]!)
      }
      return at
    }
    const tree = {
      strings,
      parent: new Uint32Array(size),
      name: new Uint32Array(size),
      file: new Uint32Array(size),
      type: new Uint8Array(size),
      self: new Float64Array(size),
      total: new Float64Array(size),
      unnamed: this.#unnamed,
    }
    for (let i = 0; i < size; i++) {
      const node = order[i]!
      const frame = nodes.frame[node]!
      tree.parent[i] = place[nodes.parent[node]!]!
      tree.name[i] = stringAt(this.#names[frame]!)
      tree.file[i] = stringAt(this.#files[frame]!)
      tree.type[i] = this.#types[frame]!
      tree.self[i] = nodes.self[node]!
      tree.total[i] = nodes.total[node]!
    }
    return tree
  }

  #idOf(frame: Frame): number {
    const known = this.#known.get(frame)
    if (known !== undefined) return known
    const type = frame.type === undefined ? 0 : Math.max(0, frameTypes.indexOf(frame.type))
    const id = this.#frame(frame.name || '[unnamed]', frame.file || (frame.mapping?.path ?? ''), type)
    if (this.#known.size >= mostKnown) this.#known.clear()
    this.#known.set(frame, id)
    return id
  }

  /** Id of the frame, or of `[other]` if there are too many. */
  #frame(name: string, file: string, type: number): number {
    const full = this.#names.length >= mostFrames
    const nameId = this.#string(printable(name), full)
    const fileId = this.#string(printable(file), full)
    if (nameId === undefined || fileId === undefined) return otherFrame
    const key = (nameId * 4 * mostFrames + fileId) * 16 + type
    const found = this.#frames.get(key)
    if (found !== undefined) return found
    if (full) return otherFrame
    const id = this.#names.length
    this.#frames.set(key, id)
    this.#names.push(nameId)
    this.#files.push(fileId)
    this.#types.push(type)
    return id
  }

  /** At most two strings per frame. */
  #string(text: string, full: boolean): number | undefined {
    const known = this.#strings.get(text)
    if (known !== undefined || full) return known
    const id = this.#strings.size
    this.#strings.set(text, id)
    return id
  }
}

/** Nodes in order of creation, parents before children, with a hash table by parent and frame. */
class Nodes {
  parent = new Uint32Array(1024)
  frame = new Uint32Array(1024)
  self = new Float64Array(1024)
  total = new Float64Array(1024)
  size = 0
  /** Node plus one; 0 if free. At least twice as many slots as nodes. */
  #table = new Int32Array(2048)

  /** Child of a node, created if missing. The first node created is the root. */
  child(parent: number, frame: number): number {
    let slot = this.#slot(parent, frame)
    const found = this.#table[slot]!
    if (found > 0) return found - 1
    if (this.size === this.parent.length) {
      this.#grow()
      slot = this.#slot(parent, frame)
    }
    const node = this.size++
    this.parent[node] = parent
    this.frame[node] = frame
    this.#table[slot] = node + 1
    return node
  }

  #slot(parent: number, frame: number): number {
    const mask = this.#table.length - 1
    let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame + 1, 0x85ebca6b)
    hash ^= hash >>> 15
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const node = this.#table[slot]! - 1
      // The root is its own parent by number, but must not be found as its child.
      if (node < 0 || (node > 0 && this.parent[node] === parent && this.frame[node] === frame)) return slot
    }
  }

  #grow(): void {
    const length = 2 * this.parent.length
    const widen = <T extends Uint32Array | Float64Array>(from: T, to: T): T => {
      to.set(from)
      return to
    }
    this.parent = widen(this.parent, new Uint32Array(length))
    this.frame = widen(this.frame, new Uint32Array(length))
    this.self = widen(this.self, new Float64Array(length))
    this.total = widen(this.total, new Float64Array(length))
    this.#table = new Int32Array(2 * length)
    for (let node = 0; node < this.size; node++)
      this.#table[this.#slot(this.parent[node]!, this.frame[node]!)] = node + 1
  }

  /** The largest nodes, at most `most`; removed ones are merged below their remaining parent. */
  pruned(most: number): Nodes {
    const sorted = this.total.slice(0, this.size).sort()
    const keep = new Uint8Array(this.size)
    // Each node adds itself and at most one merged node: half of `most` always has room, and the search comes close to
    // the maximum.
    let low = most >> 1
    let high = Math.min(most, this.size)
    while (high - low > most >> 6) {
      const middle = (low + high + 1) >> 1
      if (this.#mark(keep, middle, sorted) <= most) low = middle
      else high = middle - 1
    }
    this.#mark(keep, low, sorted)
    return this.#kept(keep)
  }

  /**
   * Marks the `count` largest nodes, older ones first among equals, so parents come first. Returns the resulting number
   * of nodes.
   */
  #mark(keep: Uint8Array, count: number, sorted: Float64Array): number {
    const { size, total, parent, frame } = this
    const least = sorted[size - count]!
    let above = 0
    for (let i = size - 1; i >= 0 && sorted[i]! > least; i--) above++
    let equal = count - above
    for (let node = 0; node < size; node++) {
      keep[node] = total[node]! > least || (total[node] === least && equal-- > 0) ? 1 : 0
      // 2: its merged node is already counted.
      if (node > 0 && keep[node] === 1 && frame[node] === otherFrame) keep[parent[node]!] = 2
    }
    let rests = 0
    for (let node = 1; node < size; node++) {
      const at = parent[node]!
      if (keep[node] !== 0 || keep[at] !== 1) continue
      keep[at] = 2
      rests++
    }
    return count + rests
  }

  #kept(keep: Uint8Array): Nodes {
    const kept = new Nodes()
    const place = new Uint32Array(this.size)
    for (let node = 0; node < this.size; node++) {
      if (keep[node] === 0) continue
      const at = kept.child(place[this.parent[node]!]!, this.frame[node]!)
      place[node] = at
      kept.self[at] = this.self[node]!
      kept.total[at] = this.total[node]!
    }
    for (let node = 1; node < this.size; node++) {
      const above = this.parent[node]!
      if (keep[node] !== 0 || keep[above] === 0) continue
      const rest = kept.child(place[above]!, otherFrame)
      kept.total[rest]! += this.total[node]!
      kept.self[rest]! += this.total[node]!
    }
    return kept
  }

  /** All nodes, each before its children; siblings by size, then by name. */
  preorder(nameOf: (node: number) => string): Uint32Array {
    const { size, parent, total } = this
    const first = new Uint32Array(size + 1)
    for (let node = 1; node < size; node++) first[parent[node]! + 1]!++
    for (let node = 0; node < size; node++) first[node + 1]! += first[node]!
    const children = new Uint32Array(size)
    const next = first.slice()
    for (let node = 1; node < size; node++) children[next[parent[node]!]!++] = node
    const order = new Uint32Array(size)
    const stack = [0]
    for (let at = 0; at < size; at++) {
      const node = stack.pop()!
      order[at] = node
      const below = children.subarray(first[node]!, first[node + 1]!)
      if (below.length > 1)
        below.sort(
          (a, b) => total[a]! - total[b]! || (nameOf(a) < nameOf(b) ? 1 : nameOf(a) > nameOf(b) ? -1 : 0),
        )
      for (const child of below) stack.push(child)
    }
    return order
  }
}
