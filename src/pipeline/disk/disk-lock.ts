import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs'
import { textOfFile } from '../../foundation/lib/optional-files.ts'
import { lockPath } from './disk-layout.ts'

/** Takes the exclusive lock of an open file (flock(2)) without waiting; false if another process has it. */
export type TakeLock = (fd: number) => boolean

/** Lock of a queue directory for one writing process. The kernel releases it when the process ends, in any way. */
export interface DirectoryLock {
  /** Takes the lock again if its file was removed or replaced. Throws as `lockDirectory` does. */
  renew(): void
  release(): void
}

/** Another process has the lock; the message has its pid and a hint. */
export class LockedByAnother extends Error {}

/**
 * Locks the queue in a directory, and writes the pid and the boot ID of the holder into its `LOCK`.
 * Throws a `LockedByAnother` with the pid of the other process, or the error of the system call.
 */
export function lockDirectory(directory: string, take: TakeLock): DirectoryLock {
  const path = lockPath(directory)
  let fd = lockFile(path, take)
  return {
    renew() {
      const mine = fstatSync(fd)
      const there = statSync(path, { throwIfNoEntry: false })
      if (there?.ino === mine.ino && there.dev === mine.dev) return
      const next = lockFile(path, take)
      closeSync(fd)
      fd = next
    },
    release: () => closeSync(fd),
  }
}

function lockFile(path: string, take: TakeLock): number {
  // Without O_TRUNC: until the lock is taken, the content belongs to another process.
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    if (!take(fd)) {
      const { pid } = holderIn(readStart(fd))
      const who = pid === 0 ? 'another process' : `process ${pid}`
      throw new LockedByAnother(
        `${who} holds its lock; stop that process, or set a different pipeline.export.queue.directory here`,
      )
    }
    ftruncateSync(fd)
    // For people who look into the file.
    const boot = textOfFile('/proc/sys/kernel/random/boot_id').trim() || 'unknown'
    writeSync(fd, `${process.pid} ${boot}\n`, 0)
    return fd
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** Holder of the lock, from the text of `LOCK`. */
export interface LockHolder {
  /** 0 if unknown. */
  readonly pid: number
}

/** Process that has the queue open now; undefined for none. Read-only. */
export function lockHolder(directory: string): LockHolder | undefined {
  const path = lockPath(directory)
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file) return undefined
  const holder = holderIn(readFileSync(path, 'latin1').slice(0, 128))
  // Trying the lock would take it from an agent that starts at this moment, so the kernel's table is read instead.
  // "1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF"; on btrfs the device differs from that of stat(2), on a file
  // system of another pid namespace the line is left out (proc(5)).
  for (const line of readFileSync('/proc/locks', 'latin1').split('\n')) {
    const [, kind, , , pid, place] = line.split(/ +/, 7)
    if (kind !== 'FLOCK' || !place?.endsWith(`:${file.ino}`)) continue
    if (Number(pid) === holder.pid || place === `${deviceText(file.dev)}:${file.ino}`)
      return { pid: Number(pid) }
  }
  return undefined
}

/** A device number of stat(2) as /proc/locks writes it (makedev(3)). */
function deviceText(dev: number): string {
  const device = BigInt(dev)
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n)
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n)
  return `${major.toString(16).padStart(2, '0')}:${minor.toString(16).padStart(2, '0')}`
}

function holderIn(text: string): LockHolder {
  const [pid = ''] = text.split(' ', 1)
  return { pid: /^\d{1,10}$/.test(pid) ? Number(pid) : 0 }
}

function readStart(fd: number): string {
  const start = Buffer.alloc(128)
  return start.toString('latin1', 0, readSync(fd, start, 0, start.length, 0))
}
