import { CountedPairs, pairBytes } from './counted-pairs.ts'
import { CountedTexts } from './counted-texts.ts'

/** Limit in UTF-16 code units; names of templates can be endless. */
const mostText = 512
/** Shares of the memory; the rest is for texts. */
const nodeShare = 0.27
const frameShare = 0.09
/** Largest share that one addition may fill. */
const mostAtATime = 1 / 3
/** The type of a frame shares a 32-bit number with its file. */
const typeBits = 5
const serviceType = (1 << typeBits) - 1
/** Above the numbers of all types. */
export const typeEnd = 1 << typeBits

export const rootNode = 0
/** Numbers of empty values. */
export const noText = 0
export const noType = 0

/**
 * Stacks with shared prefixes, as a tree: below the root are services, below them frames, outermost first. Entries
 * without references are removed at once, so nothing ever has to be rebuilt. Memory is allocated once; if it runs out,
 * `evict` is called to release something, and returns false if there is nothing left.
 */
export class StackTrie {
  readonly #texts: CountedTexts
  /** Pairs of name, and file with type. */
  readonly #frames: CountedPairs
  /** Pairs of parent and frame. */
  readonly #nodes: CountedPairs
  readonly #types = ['']
  readonly #evict: () => boolean
  #newNodes = 0
  #newFrames = 0
  #newTextBytes = 0

  constructor(maxBytes: number, evict: () => boolean) {
    const nodes = Math.floor((maxBytes * nodeShare) / pairBytes)
    const frames = Math.floor((maxBytes * frameShare) / pairBytes)
    this.#nodes = new CountedPairs(nodes)
    this.#frames = new CountedPairs(frames)
    this.#texts = new CountedTexts(maxBytes - (nodes + frames) * pairBytes)
    this.#evict = evict
    this.#text('')
    this.#texts.count[noText]! += 2
    const root = this.#frames.add(noText, fileAndType(noText, noType))
    this.#frames.count[root]!++
    this.#nodes.add(rootNode, root)
    this.#nodes.count[rootNode]!++
  }

  get bytes(): number {
    return this.#nodes.bytes + this.#frames.bytes + this.#texts.bytes
  }

  get nodes(): number {
    return this.#nodes.size
  }

  /** Above the numbers of all nodes. */
  get end(): number {
    return this.#nodes.end
  }

  /** Above the numbers of all texts. */
  get textEnd(): number {
    return this.#texts.end
  }

  /** Parent by node. The root is its own parent. */
  get parents(): Uint32Array {
    return this.#nodes.first
  }

  /** Frame number by node. */
  get frames(): Uint32Array {
    return this.#nodes.second
  }

  isService(frame: number): boolean {
    return (this.#frames.second[frame]! & serviceType) === serviceType
  }

  /** Text number of a frame's name. */
  nameOf(frame: number): number {
    return this.#frames.first[frame]!
  }

  /** Text number of a frame's file. */
  fileOf(frame: number): number {
    return this.#frames.second[frame]! >>> typeBits
  }

  /** Type of a frame, for `typeName`. */
  typeOf(frame: number): number {
    return this.isService(frame) ? noType : this.#frames.second[frame]! & serviceType
  }

  /** `profile.frame.type`; '' if there is none. */
  typeName(type: number): string {
    return this.#types[type] ?? ''
  }

  text(number: number): string {
    return this.#texts.text(number)
  }

  /** The name of a service's node. */
  serviceOf(node: number): string {
    return this.text(this.nameOf(this.frames[node]!))
  }

  /** The node of a service; -1: unknown. */
  findService(name: string): number {
    const text = this.#texts.find(bounded(name))
    const frame = text < 0 ? -1 : this.#frames.find(text, fileAndType(noText, serviceType))
    return frame < 0 ? -1 : this.#nodes.find(rootNode, frame)
  }

  /** Additions from here on may fill a third of the memory. */
  begin(): void {
    this.#newNodes = this.#newFrames = this.#newTextBytes = 0
  }

  /** The number of a frame, which the caller must release; -1: no room. */
  holdFrame(name: string, file: string, type: string): number {
    return this.#holdFrame(name, file, this.#type(type))
  }

  /** The same for the frame that stands for a service. */
  holdService(name: string): number {
    return this.#holdFrame(name, '', serviceType)
  }

  releaseFrame(frame: number): void {
    if (--this.#frames.count[frame]! > 0) return
    const name = this.nameOf(frame)
    const file = this.fileOf(frame)
    this.#frames.delete(frame)
    this.#releaseText(name)
    this.#releaseText(file)
  }

  /**
   * The descendant of a node along `depth` held frames, created if missing; -1: no room. The caller must hold it before
   * adding anything else. `isLast`: the node for which room was reserved.
   */
  descend(from: number, path: ArrayLike<number>, depth: number, isLast = false): number {
    const nodes = this.#nodes
    for (;;) {
      let node = from
      let at = 0
      for (; at < depth; at++) {
        const next = nodes.find(node, path[at]!)
        if (next < 0) break
        node = next
      }
      const missing = depth - at
      if (missing === 0) return node
      if (!isLast && this.#newNodes + missing > nodes.capacity * mostAtATime) return -1
      if (nodes.room > missing - (isLast ? 1 : 0)) {
        this.#newNodes += missing
        for (; at < depth; at++) node = this.#node(node, path[at]!)
        return node
      }
      // Eviction may remove what was found.
      if (!this.#evict()) return -1
    }
  }

  hold(node: number): void {
    this.#nodes.count[node]!++
  }

  release(node: number): void {
    const nodes = this.#nodes
    for (let at = node; --nodes.count[at]! === 0; ) {
      const above = nodes.first[at]!
      const frame = nodes.second[at]!
      nodes.delete(at)
      this.releaseFrame(frame)
      at = above
    }
  }

  #node(parent: number, frame: number): number {
    this.#nodes.count[parent]!++
    this.#frames.count[frame]!++
    return this.#nodes.add(parent, frame)
  }

  #type(type: string): number {
    const known = this.#types.indexOf(type)
    if (known >= 0) return known
    return this.#types.length < serviceType ? this.#types.push(type) - 1 : 0
  }

  #holdFrame(name: string, file: string, type: number): number {
    const nameText = this.#text(name)
    if (nameText === undefined) return -1
    this.#texts.count[nameText]!++
    const fileText = this.#text(file)
    if (fileText !== undefined) {
      this.#texts.count[fileText]!++
      const second = fileAndType(fileText, type)
      const known = this.#frames.find(nameText, second)
      const frame = known < 0 ? this.#newFrame(nameText, second) : known
      if (frame >= 0) this.#frames.count[frame]!++
      // A new frame holds them itself.
      if (frame >= 0 && known < 0) return frame
      this.#releaseText(fileText)
      this.#releaseText(nameText)
      return frame
    }
    this.#releaseText(nameText)
    return -1
  }

  #newFrame(name: number, second: number): number {
    const frames = this.#frames
    if (++this.#newFrames > frames.capacity * mostAtATime) return -1
    while (frames.room === 0) if (!this.#evict()) return -1
    return frames.add(name, second)
  }

  #text(given: string): number | undefined {
    const text = bounded(given)
    const known = this.#texts.find(text)
    if (known >= 0) return known
    const bytes = CountedTexts.bytesOf(text)
    const { maxBytes } = this.#texts
    if (this.#newTextBytes + bytes > maxBytes * mostAtATime) return undefined
    while (this.#texts.bytes + bytes > maxBytes) if (!this.#evict()) return undefined
    this.#newTextBytes += bytes
    return this.#texts.add(text, bytes)
  }

  #releaseText(text: number): void {
    if (--this.#texts.count[text]! === 0) this.#texts.delete(text)
  }
}

function fileAndType(file: number, type: number): number {
  return ((file << typeBits) | type) >>> 0
}

/** A copy: a substring would keep the whole parent text alive. */
function bounded(text: string): string {
  return text.length <= mostText ? text : Buffer.from(`${text.slice(0, mostText - 1)}…`).toString()
}
