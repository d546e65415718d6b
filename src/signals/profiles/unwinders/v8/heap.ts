import { type ProcessMemory, pointerAt } from '../../../../kernel/process-memory.ts'
import type { V8Constants } from './constants.ts'

/** Maximum characters of a name. */
const mostCharacters = 1024
const mostDepth = 16
/** Maximum parts of one string: two per level of depth would be 65,536. */
const mostParts = 64

const representation = { sequential: 0, cons: 1, external: 2, sliced: 3, thin: 5 } as const
const representationMask = 7
const oneByteBit = 8
const uncachedBit = 16

/** Location of a string's contiguous characters. */
export interface Characters {
  readonly address: number
  readonly count: number
  readonly width: 1 | 2
}

/** Reads objects of a V8 heap while the program runs: any object may be gone or replaced. */
export class V8Heap {
  readonly constants: V8Constants
  readonly memory: ProcessMemory
  #parts = 0

  constructor(memory: ProcessMemory, constants: V8Constants) {
    this.memory = memory
    this.constants = constants
  }

  /** Instance type in the map of an object; -1 if it is not an object. */
  typeOf(object: number): number {
    const map = taggedAt(this.memory.read(object, 8), 0)
    return map === 0 ? -1 : (this.memory.read(map + this.constants.instanceType, 2)?.readUInt16LE() ?? -1)
  }

  isString(object: number): boolean {
    const type = this.typeOf(object)
    return type >= 0 && type < this.constants.firstNonstring
  }

  /** Untagged object in a field; 0 for none, or for a Smi. */
  field(object: number, offset: number): number {
    return object === 0 ? 0 : taggedAt(this.memory.read(object + offset, 8), 0)
  }

  /** Smi in a field; undefined if there is none. */
  integer(object: number, offset: number): number | undefined {
    return integerAt(this.memory.read(object + offset, 8), 0)
  }

  /** A string, cut after 1,024 characters; undefined if it is not one, or only partly readable. */
  text(object: number): string | undefined {
    this.#parts = 0
    return this.#part(object, 0, mostCharacters, 0)
  }

  #part(object: number, start: number, most: number, depth: number): string | undefined {
    if (depth > mostDepth || ++this.#parts > mostParts) return undefined
    const type = this.typeOf(object)
    if (type < 0 || type >= this.constants.firstNonstring) return undefined
    const length = this.memory.u32(object + this.constants.stringLength)
    if (length === undefined || start > length) return undefined
    const count = Math.min(most, length - start)
    if (count === 0) return ''
    const { constants } = this
    switch (type & representationMask) {
      case representation.sequential:
        return this.#sequential(object, type, start, count)
      case representation.cons:
        return this.#joined(object, start, count, depth)
      case representation.thin:
        return this.#part(this.field(object, constants.thinActual), start, count, depth + 1)
      case representation.sliced: {
        const from = this.integer(object, constants.slicedOffset)
        if (from === undefined || from < 0) return undefined
        return this.#part(this.field(object, constants.slicedParent), from + start, count, depth + 1)
      }
      case representation.external:
        return '[external string]'
      default:
        return undefined
    }
  }

  #sequential(object: number, type: number, start: number, count: number): string | undefined {
    const isOneByte = (type & oneByteBit) !== 0
    const { oneByteChars, twoByteChars } = this.constants
    if (isOneByte) return this.memory.read(object + oneByteChars + start, count)?.toString('latin1')
    return this.memory.read(object + twoByteChars + start * 2, count * 2)?.toString('utf16le')
  }

  #joined(object: number, start: number, count: number, depth: number): string | undefined {
    const first = this.field(object, this.constants.consFirst)
    const second = this.field(object, this.constants.consSecond)
    const firstLength = this.memory.u32(first + this.constants.stringLength)
    if (first === 0 || second === 0 || firstLength === undefined) return undefined
    if (start >= firstLength) return this.#part(second, start - firstLength, count, depth + 1)
    const head = this.#part(first, start, count, depth + 1)
    const rest = count - (firstLength - start)
    if (head === undefined || rest <= 0) return head
    const tail = this.#part(second, 0, rest, depth + 1)
    return tail === undefined ? undefined : head + tail
  }

  /** Location of the characters of a string; undefined if they are not contiguous. */
  characters(object: number, depth = 0): Characters | undefined {
    const type = this.typeOf(object)
    if (depth > mostDepth || type < 0 || type >= this.constants.firstNonstring) return undefined
    const count = this.memory.u32(object + this.constants.stringLength)
    if (count === undefined) return undefined
    const width = type & oneByteBit ? 1 : 2
    const { constants } = this
    switch (type & representationMask) {
      case representation.sequential:
        return {
          address: object + (width === 1 ? constants.oneByteChars : constants.twoByteChars),
          count,
          width,
        }
      case representation.thin:
        return this.characters(this.field(object, constants.thinActual), depth + 1)
      case representation.cons: {
        // A flattened cons string has its content in the first part, and an empty second part.
        const first = this.field(object, constants.consFirst)
        return this.memory.u32(first + constants.stringLength) === count
          ? this.characters(first, depth + 1)
          : undefined
      }
      case representation.external: {
        // The data pointer follows the resource, unless the type says that it is not cached.
        const address = type & uncachedBit ? 0 : this.memory.pointer(object + constants.externalResource + 8)
        return address === 0 ? undefined : { address, count, width }
      }
      default:
        return undefined
    }
  }
}

/** Untagged object of a tagged word; 0 for anything else. */
export function taggedAt(from: Buffer | undefined, at: number): number {
  if (from === undefined || at + 8 > from.length) return 0
  const pointer = pointerAt(from, at)
  return pointer % 8 === 1 ? pointer - 1 : 0
}

/** Smi: the upper half of a word whose lower half is zero. */
export function integerAt(from: Buffer | undefined, at: number): number | undefined {
  if (from === undefined || at + 8 > from.length || from.readUInt32LE(at) !== 0) return undefined
  return from.readInt32LE(at + 4)
}
