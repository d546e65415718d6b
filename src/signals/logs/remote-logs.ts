// Logs on network file systems and FUSE, which may never respond: svc accesses them only while
// their file system responds to svc-probe.

import { readFileSync } from 'node:fs'
import { within } from '../../foundation/lib/within.ts'
import { type Mount, parseMounts, RemotePaths } from '../../kernel/mounts.ts'
import type { RemoteFiles } from '../../kernel/remote-files.ts'

/** Maximum wait of a reading round for responses, in milliseconds; a mount without one counts as working until then. */
const patienceMs = 250
/** Maximum paths whose mount is remembered during a scan. */
const mostPaths = 20_000

interface RemoteMount {
  readonly mount: Mount
  hasAnswered: boolean
  /** Whether it did not respond in time. */
  isLate: boolean
  answer: Promise<void> | undefined
}

export class RemoteLogs {
  readonly #files: RemoteFiles
  readonly #mountinfo: string
  #bytes = Buffer.alloc(0)
  #paths = new RemotePaths([])
  /** File names of mount points that may hang: any user may mount (FUSE) on a file of their own. */
  #names = new Set<string>()
  readonly #points = new Map<string, string | undefined>()
  /** Mounts by mount point; those with logs are probed. */
  #mounts = new Map<string, Mount>()
  readonly #used = new Map<string, RemoteMount>()
  /** Mount points whose logs were not accessed, in this scan and in the one before. */
  #held = new Set<string>()
  #heldBefore = new Set<string>()

  constructor(files: RemoteFiles, mountinfo = '/proc/self/mountinfo') {
    this.#files = files
    this.#mountinfo = mountinfo
  }

  /** Starts a scan of all directories: mounts and links may have changed. */
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
    this.#paths = new RemotePaths([...this.#mounts.values()])
  }

  /** Probes all mounts with logs, and waits briefly for those that responded before. Always resolves. */
  async ask(): Promise<void> {
    if (this.#used.size === 0) return
    const waiting: [RemoteMount, Promise<void> | undefined][] = []
    for (const used of this.#used.values()) {
      this.#ask(used)
      if (!used.isLate) waiting.push([used, used.answer])
    }
    await within(patienceMs, Promise.all(waiting.map(([, answer]) => answer)))
    // By the awaited response, not by the time: timers may be early.
    for (const [used, answer] of waiting) if (used.answer === answer) used.isLate = answer !== undefined
  }

  /**
   * Whether a path must not be accessed now: mounts of users never may, nor paths through links of /proc, which lead
   * into other mount namespaces. `isBeside`: no link, in a directory that is not held.
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

  /** Whether it was not accessible until now: files found there need not be new. */
  cameBack(path: string): boolean {
    const point = this.#heldBefore.size === 0 ? undefined : this.#pointOf(path)
    return point !== undefined && this.#heldBefore.has(point)
  }

  /** Whether there is a mount that may never respond. */
  get mayHang(): boolean {
    return this.#names.size > 0
  }

  /** Mount points whose logs were not accessed in this scan and in the one before. */
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

  #ask(used: RemoteMount): void {
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
