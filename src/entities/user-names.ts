import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

const maxBytes = 1024 * 1024
const lookAgainMs = 60_000

/**
 * Names of this host's users, by its passwd(5). Directories on the network are not asked. The first process of the host
 * may be closed to the agent; then a process that is in no container has the same file.
 */
export class UserNames {
  private readonly procDir: string
  private readonly now: () => number
  private names: ReadonlyMap<number, string> = new Map()
  private state = ''
  private lookedMs = Number.NEGATIVE_INFINITY

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(procDir: string, now: () => number) {
    this.procDir = procDir
    this.now = now
  }

  /** Of the user of a process that is in no container; '' where it has none, or cannot be found. */
  of(uid: number, pid: number): string {
    if (this.now() - this.lookedMs >= lookAgainMs && !this.look(1)) this.look(pid)
    return this.names.get(uid) ?? ''
  }

  /** Whether the file is there, as this process sees it. */
  private look(pid: number): boolean {
    this.lookedMs = this.now()
    let fd = -1
    try {
      fd = openSync(`${this.procDir}/${pid}/root/etc/passwd`, constants.O_RDONLY | constants.O_NONBLOCK)
      const { size, mtimeMs, ino, dev } = fstatSync(fd)
      const state = `${dev}/${ino}/${size}/${mtimeMs}`
      if (state === this.state) return true
      const bytes = Buffer.alloc(Math.min(size, maxBytes))
      this.names = namesIn(bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0)))
      this.state = state
      return true
    } catch {
      this.names = new Map() // a host without one: its users have numbers only
      this.state = ''
      return false
    } finally {
      if (fd >= 0) closeSync(fd)
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
