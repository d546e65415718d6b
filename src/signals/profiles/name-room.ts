import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { FairShare, type Owner } from '../../foundation/lib/fair-share.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import type { Frame } from '../../foundation/model/profile.ts'
import { ownerOf } from '../../kernel/process-owner.ts'

/** Of a name of a function or file, in UTF-8. Names of C++ templates have some hundred. */
const mostNameBytes = 1024
const mark = '…'
/** Of all frames between two beginnings, and what a frame takes beside its names. */
const mostBytes = 16 * 1024 * 1024
const frameBytes = 256
/** So long the owner of a process is believed. */
const ownerMs = 30_000
const mostOwners = 1024

/** A name as it is kept. What is cut is a text of its own, which does not hold the whole one. */
export function cutName(name: string): string {
  // No character has more than 3 bytes for each of its units.
  if (name.length <= mostNameBytes / 3) return name
  const bytes = Buffer.from(name)
  if (bytes.length <= mostNameBytes) return name
  let end = mostNameBytes - Buffer.byteLength(mark)
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + mark
}

/** Bytes that a frame takes, about. */
export function bytesOfFrame({
  name,
  systemName = '',
  file,
}: Pick<Frame, 'name' | 'systemName' | 'file'>): number {
  return frameBytes + name.length + systemName.length + file.length
}

/** Room for the frames of all processes, of which each owner has a share. */
export class NameRoom {
  /** Frames that found none, since the start. */
  refused = 0
  readonly #share = new FairShare(mostBytes)
  readonly #owners = small(
    new BoundedMap<number, { readonly owner: Owner; readonly readMs: number }>(mostOwners),
  )
  readonly #procDir: string

  constructor(procDir = '/proc') {
    this.#procDir = procDir
  }

  get bytes(): number {
    return this.#share.used
  }

  /** Whether there is room for another frame, which a process brings. */
  take(pid: number, bytes: number): boolean {
    const owner = this.ownerOf(pid)
    if (this.#share.mayGrow(owner, bytes)) {
      this.#share.add(owner, bytes)
      return true
    }
    this.refused++
    return false
  }

  ownerOf(pid: number): Owner {
    const known = this.#owners.get(pid)
    const readMs = performance.now()
    if (known !== undefined && readMs - known.readMs < ownerMs) return known.owner
    const owner = ownerOf(this.#procDir, pid)
    this.#owners.set(pid, { owner, readMs })
    return owner
  }

  clear(): void {
    this.#share.clear()
  }
}
