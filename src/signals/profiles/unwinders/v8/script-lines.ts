import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import type { ProcessMemory } from '../../../../kernel/process-memory.ts'
import type { Characters } from './heap.ts'

const blockBytes = 16 * 1024
/** Functions beyond this position have no line. */
const mostBytes = 8 * 1024 * 1024
const maxScripts = 16
const lineFeed = 10

interface Script {
  readonly source: Characters
  /** Lines that end before each block; only the first `known` blocks are counted. */
  readonly before: number[]
}

/**
 * Line numbers of script positions, from the line feeds before them; each part of a script is counted once. Keeps no
 * source text.
 */
export class ScriptLines {
  readonly #memory: ProcessMemory
  readonly #scripts = small(new BoundedMap<number, Script>(maxScripts))

  constructor(memory: ProcessMemory) {
    this.#memory = memory
  }

  /** Zero-based; undefined if unknown. */
  line(source: Characters, position: number): number | undefined {
    const bytes = position * source.width
    if (position > source.count || bytes > mostBytes) return undefined
    const { before } = this.#script(source)
    const block = Math.floor(bytes / blockBytes)
    while (before.length <= block) {
      const last = before.length - 1
      const feeds = this.#feeds(source, last * blockBytes, blockBytes)
      if (feeds === undefined) return undefined
      before.push(before[last]! + feeds)
    }
    const start = block * blockBytes
    const rest = bytes === start ? 0 : this.#feeds(source, start, bytes - start)
    return rest === undefined ? undefined : before[block]! + rest
  }

  #script(source: Characters): Script {
    const known = this.#scripts.get(source.address)
    if (known?.source.count === source.count && known.source.width === source.width) return known
    const script = { source, before: [0] }
    this.#scripts.set(source.address, script)
    return script
  }

  #feeds({ address, width }: Characters, start: number, length: number): number | undefined {
    const bytes = this.#memory.read(address + start, length)
    if (bytes === undefined) return undefined
    let count = 0
    for (let at = 0; at < length; at += width)
      if (bytes[at] === lineFeed && (width === 1 || bytes[at + 1] === 0)) count++
    return count
  }
}
