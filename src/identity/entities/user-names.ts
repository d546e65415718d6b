import { readSync } from 'node:fs'
import { closeForeign, openForeign } from '../../foundation/lib/foreign-file.ts'
import { linkText } from '../../foundation/lib/optional-files.ts'

const maxBytes = 1024 * 1024
const lookAgainMs = 60_000

/**
 * Names of this host's users, by its passwd(5). Directories on the network are not asked. The first process of the host
 * may be closed to the agent; then a process of root that is in no container, and in no user namespace of its own, has
 * the same file. Anybody else may see a file of their own making there.
 */
export class UserNames {
  readonly #procDir: string
  readonly #now: () => number
  #names: ReadonlyMap<number, string> = new Map()
  #state = ''
  #firstMs = Number.NEGATIVE_INFINITY
  #otherMs = Number.NEGATIVE_INFINITY
  #isFirstOpen = false

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(procDir: string, now: () => number) {
    this.#procDir = procDir
    this.#now = now
  }

  /** Of the user of a process that is in no container; '' where it has none, or cannot be found. */
  of(uid: number, pid: number): string {
    const now = this.#now()
    if (now - this.#firstMs >= lookAgainMs) {
      this.#firstMs = now
      this.#isFirstOpen = this.#look(1)
    }
    if (!this.#isFirstOpen && uid === 0 && now - this.#otherMs >= lookAgainMs && this.#isOnHost(pid)) {
      this.#otherMs = now
      this.#look(pid)
    }
    return this.#names.get(uid) ?? ''
  }

  #isOnHost(pid: number): boolean {
    return this.#userNamespace(pid) === this.#userNamespace('self')
  }

  #userNamespace(pid: number | 'self'): string {
    // '': a kernel without them, or a process that ended, which has no file either.
    return linkText(`${this.#procDir}/${pid}/ns/user`)
  }

  /** Whether the file is there, as this process sees it. */
  #look(pid: number): boolean {
    let fd = -1
    try {
      const file = openForeign('/etc/passwd', `${this.#procDir}/${pid}/root`)
      fd = file.fd
      const { size, mtimeMs, ino, dev } = file.stats
      const state = `${dev}/${ino}/${size}/${mtimeMs}`
      if (state === this.#state) return true
      const bytes = Buffer.alloc(Math.min(size, maxBytes))
      this.#names = namesIn(bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0)))
      this.#state = state
      return true
    } catch {
      this.#names = new Map() // a host without one: its users have numbers only
      this.#state = ''
      return false
    } finally {
      if (fd >= 0) closeForeign(fd)
    }
  }
}

/** `name:password:uid:…`; the first of several names is the one that counts (getpwuid(3)). */
function namesIn(text: string): Map<number, string> {
  const names = new Map<number, string>()
  for (const line of text.split('\n')) {
    const [name = '', , uid = ''] = line.split(':', 3)
    if (/^[A-Za-z_][\w.$-]{0,255}$/.test(name) && /^\d+$/.test(uid) && !names.has(Number(uid)))
      names.set(Number(uid), name)
  }
  return names
}
