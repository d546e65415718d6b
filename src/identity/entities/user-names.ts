import { readSync } from 'node:fs'
import { closeForeign, openForeign } from '../../foundation/lib/foreign-file.ts'
import { linkText } from '../../foundation/lib/optional-files.ts'

const maxBytes = 1024 * 1024
const lookAgainMs = 60_000

/**
 * Names of this host's users from its passwd(5); network directories are not queried. If the agent cannot access the
 * first process of the host, a root process outside containers and user namespaces has the same file. Other processes
 * may see a forged one.
 */
export class UserNames {
  readonly #procDir: string
  readonly #now: () => number
  #names: ReadonlyMap<number, string> = new Map()
  #state = ''
  #firstMs = Number.NEGATIVE_INFINITY
  #otherMs = Number.NEGATIVE_INFINITY
  #isFirstOpen = false

  /** `now`: milliseconds of a monotonic clock. */
  constructor(procDir: string, now: () => number) {
    this.#procDir = procDir
    this.#now = now
  }

  /** User name for a process outside containers; '' if there is none, or it cannot be found. */
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
    // '': a kernel without user namespaces, or an ended process, which has no file either.
    return linkText(`${this.#procDir}/${pid}/ns/user`)
  }

  /** Whether the file exists, as this process sees it. */
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
      this.#names = new Map() // no such file on this host: users have only numbers
      this.#state = ''
      return false
    } finally {
      if (fd >= 0) closeForeign(fd)
    }
  }
}

/** Parses `name:password:uid:…`; the first name of a user wins (getpwuid(3)). */
function namesIn(text: string): Map<number, string> {
  const names = new Map<number, string>()
  for (const line of text.split('\n')) {
    const [name = '', , uid = ''] = line.split(':', 3)
    if (/^[A-Za-z_][\w.$-]{0,255}$/.test(name) && /^\d+$/.test(uid) && !names.has(Number(uid)))
      names.set(Number(uid), name)
  }
  return names
}
