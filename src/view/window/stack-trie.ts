import { CountedPairs, pairBytes } from './counted-pairs.ts'
import { CountedTexts } from './counted-texts.ts'

/** UTF-16 units of a name; functions of templates have endless ones. */
const mostText = 512
/** Shares of the memory; the rest is for texts. */
const nodeShare = 0.27
const frameShare = 0.09
/** Of all that there is room for, what comes at a time may take. */
const mostAtATime = 1 / 3
/** Types of frames share a number of 32 bits with the file. */
const typeBits = 5
const serviceType = (1 << typeBits) - 1
/** Beyond the numbers of all types. */
export const typeEnd = 1 << typeBits

export const rootNode = 0
/** Numbers of what is empty. */
export const noText = 0
export const noType = 0

/**
 * Stacks that share their beginnings, as a tree: below the root stand services, below them frames, the outermost first.
 * Whatever nobody refers to any more is gone at once, so that nothing has ever to be rebuilt. Memory is taken once; where
 * it does not suffice, `evict` is asked to let go of something, and answers false where it has nothing left.
 */
export class StackTrie {
  readonly #texts: CountedTexts
  /** Name, and file with type. */
  readonly #frames: CountedPairs
  /** Parent and frame. */
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

  /** Beyond the numbers of all nodes. */
  get end(): number {
    return this.#nodes.end
  }

  /** Beyond the numbers of all texts. */
  get textEnd(): number {
    return this.#texts.end
  }

  /** By node. The root is its own. */
  get parents(): Uint32Array {
    return this.#nodes.first
  }

  /** By node: the number of its frame. */
  get frames(): Uint32Array {
    return this.#nodes.second
  }

  isService(frame: number): boolean {
    return (this.#frames.second[frame]! & serviceType) === serviceType
  }

  /** The number of its text. */
  nameOf(frame: number): number {
    return this.#frames.first[frame]!
  }

  /** The same. */
  fileOf(frame: number): number {
    return this.#frames.second[frame]! >>> typeBits
  }

  /** For `typeName`. */
  typeOf(frame: number): number {
    return this.isService(frame) ? noType : this.#frames.second[frame]! & serviceType
  }

  /** `profile.frame.type`; '' of what has none. */
  typeName(type: number): string {
    return this.#types[type] ?? ''
  }

  text(number: number): string {
    return this.#texts.text(number)
  }

  /** The name of a node of a service. */
  serviceOf(node: number): string {
    return this.text(this.nameOf(this.frames[node]!))
  }

  /** The node of a service; -1: nothing is known of it. */
  findService(name: string): number {
    const text = this.#texts.find(bounded(name))
    const frame = text < 0 ? -1 : this.#frames.find(text, fileAndType(noText, serviceType))
    return frame < 0 ? -1 : this.#nodes.find(rootNode, frame)
  }

  /** What is added from here on may take a third of all room. */
  begin(): void {
    this.#newNodes = this.#newFrames = this.#newTextBytes = 0
  }

  /** The number of a frame, which has to be let go of; -1: there is no room. */
  holdFrame(name: string, file: string, type: string): number {
    return this.#holdFrame(name, file, this.#type(type))
  }

  /** The same of what stands for a service. */
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
   * The node that is reached from another one by so many frames, all of which are held; made where it is not there.
   * -1: there is no room. Whoever wants to keep it has to hold it before anything else is added. `isLast`: the node for
   * which room was kept until now.
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
      // What was found may go with it.
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
      // A new frame has them for itself.
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

/** A text of its own: a part of a long one would keep all of it. */
function bounded(text: string): string {
  return text.length <= mostText ? text : Buffer.from(`${text.slice(0, mostText - 1)}…`).toString()
}
