import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { FairShare, type Owner } from '../../foundation/lib/fair-share.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import type { Frame } from '../../foundation/model/profile.ts'
import { ownerOf } from '../../kernel/process-owner.ts'

/** Maximum UTF-8 bytes of a function or file name. C++ template names have some hundred. */
const mostNameBytes = 1024
const mark = '…'
/** Maximum for all frames between two `clear` calls, and the overhead of a frame. */
const mostBytes = 16 * 1024 * 1024
const frameBytes = 256
/** Cache time of a process's owner. */
const ownerMs = 30_000
const mostOwners = 1024

/** Shortened name. A copy: a substring would keep the whole text in memory. */
export function cutName(name: string): string {
  // A UTF-16 unit has at most 3 bytes in UTF-8.
  if (name.length <= mostNameBytes / 3) return name
  const bytes = Buffer.from(name)
  if (bytes.length <= mostNameBytes) return name
  let end = mostNameBytes - Buffer.byteLength(mark)
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + mark
}

/** Approximate memory of a frame. */
export function bytesOfFrame({
  name,
  systemName = '',
  file,
}: Pick<Frame, 'name' | 'systemName' | 'file'>): number {
  return frameBytes + name.length + systemName.length + file.length
}

/** Memory for the frames of all processes, shared by owner. */
export class NameRoom {
  /** Frames refused for lack of room, since the start. */
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

  /** Takes room for a frame of a process; false if there is none. */
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
