// Logs on file systems of servers and other programs (NFS, FUSE), which may never answer: they are touched only while
// their file system answers a question of svc-probe.

import { readFileSync } from 'node:fs'
import type { FarFiles } from '../kernel/far-files.ts'
import { FarPaths, type Mount, parseMounts } from '../kernel/mounts.ts'
import { within } from '../lib/within.ts'

/** So long a round of reading waits for answers, and a mount without one is still taken for well. */
const patienceMs = 250
/** Paths of which is remembered in a look where they lie. */
const mostPaths = 20_000

interface FarMount {
  readonly mount: Mount
  hasAnswered: boolean
  /** It was waited for, and did not answer. */
  isLate: boolean
  answer: Promise<void> | undefined
}

export class FarLogs {
  readonly #files: FarFiles
  readonly #mountinfo: string
  #bytes = Buffer.alloc(0)
  #paths = new FarPaths([])
  /** Last names of what is mounted and may hang: anybody may mount (FUSE) on a file of his own. */
  #names = new Set<string>()
  readonly #points = new Map<string, string | undefined>()
  /** By where they are mounted; those that logs lie on are asked. */
  #mounts = new Map<string, Mount>()
  readonly #used = new Map<string, FarMount>()
  /** Where logs were left alone, in this look and in the one before. */
  #held = new Set<string>()
  #heldBefore = new Set<string>()

  constructor(files: FarFiles, mountinfo = '/proc/self/mountinfo') {
    this.#files = files
    this.#mountinfo = mountinfo
  }

  /** A look at all directories begins: mounts and links may be others by now. */
  begin(): void {
    this.#heldBefore = this.#held
    this.#held = new Set()
    const bytes = readFileSync(this.#mountinfo)
    if (!bytes.equals(this.#bytes)) {
      this.#bytes = bytes
      this.#mounts = new Map(parseMounts(bytes, '/').map(mount => [mount.path.toString('latin1'), mount]))
      for (const [point, { mount }] of this.#used)
        if (this.#mounts.get(point)?.device !== mount.device) this.#used.delete(point)
    }
    this.#points.clear()
    const mounts = [...this.#mounts]
    this.#names = new Set(mounts.filter(([, { mayHang }]) => mayHang).map(([point]) => nameOf(point)))
    this.#paths = new FarPaths([...this.#mounts.values()])
  }

  /** Asks all that logs lie on, and waits for a moment for those that answered before. Resolves also where none does. */
  async ask(): Promise<void> {
    if (this.#used.size === 0) return
    const waiting: [FarMount, Promise<void> | undefined][] = []
    for (const used of this.#used.values()) {
      this.#ask(used)
      if (!used.isLate) waiting.push([used, used.answer])
    }
    await within(patienceMs, Promise.all(waiting.map(([, answer]) => answer)))
    // By what was waited for, not by the time: timers may be early.
    for (const [used, answer] of waiting) if (used.answer === answer) used.isLate = answer !== undefined
  }

  /**
   * Whether a path must not be touched now. Those that users mounted never may: nobody else answers for them; nor those
   * through links of /proc, which lead into mounts of other namespaces. `isBeside`: no link, in a directory that is not held.
   */
  isHeld(path: string, isBeside = false): boolean {
    if (isBeside && !this.#names.has(Buffer.from(nameOf(path)).toString('latin1'))) return false
    const point = this.#pointOf(path)
    if (point === undefined) return false
    const mount = this.#mounts.get(point)
    let isHeld = true
    if (mount !== undefined && mount.type !== 'proc' && !mount.isUsers) {
      const used = this.#used.get(point) ?? { mount, hasAnswered: false, isLate: false, answer: undefined }
      this.#used.set(point, used)
      if (!used.hasAnswered) this.#ask(used)
      isHeld = !used.hasAnswered || used.isLate
    }
    if (isHeld) this.#held.add(point)
    return isHeld
  }

  /** Whether it was left alone until now: what is found there need not be new. */
  cameBack(path: string): boolean {
    const point = this.#heldBefore.size === 0 ? undefined : this.#pointOf(path)
    return point !== undefined && this.#heldBefore.has(point)
  }

  /** Where logs were left alone in this look and in the one before. */
  get held(): readonly string[] {
    return [...this.#held].filter(point => this.#heldBefore.has(point))
  }

  close(): void {
    this.#files.close()
  }

  #pointOf(path: string): string | undefined {
    if (this.#points.has(path)) return this.#points.get(path)
    const point = this.#paths.pointOf(path)
    if (this.#points.size < mostPaths) this.#points.set(path, point)
    return point
  }

  #ask(used: FarMount): void {
    if (used.answer !== undefined) return
    const { path, major, minor } = used.mount
    used.answer = this.#files
      .statfs(path, `${major}:${minor}`)
      .then(
        () => {
          used.hasAnswered = true
        },
        () => {
          used.hasAnswered = false // it is gone, or svc-probe is
        },
      )
      .finally(() => {
        used.answer = undefined
        used.isLate = false
      })
  }
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
