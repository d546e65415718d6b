// Whether a file of another process lies where asking for it may never be answered, found out without asking.

import { closeSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { linkText } from '../foundation/lib/optional-files.ts'
import { type Mount, parseMounts } from './mounts.ts'

/** A place without opening what is there (open(2)); the runtime does not name it. */
const O_PATH = 0o10000000
/** Of a list of mounts, for a namespace of its own (containers have some 30 of 150 bytes), and for the host. */
const mostOwnBytes = 256 * 1024
const mostHostBytes = 8 * 1024 * 1024
const partBytes = 64 * 1024
/** For how long the host's mounts, which are root's, are taken as they were, in milliseconds. */
const goodForMs = 1_000

/** By their numbers. */
type Mounts = ReadonlyMap<string, Pick<Mount, 'type' | 'major' | 'minor' | 'mayHang'>>

/**
 * Whether looking at what a link of /proc leads to (exe, root, map_files) may wait for ever: its mount is of a server or
 * of another program, or one that nobody vouches for. Users may mount file systems of their own in namespaces of their
 * own, and an overlay (overlayfs) upon them, which answers everybody where those answer them alone. Such an overlay is
 * believed only where the host has the same one mounted, as those of containers are. A mount that neither the process
 * nor the host shows is not believed either: descriptors are passed on; nor is one among more than anybody needs. Throws
 * where there is no such link.
 */
export function mayHangAt(procDir: string, pid: number, link: string): boolean {
  const place = openPlace(link)
  try {
    return mayHangBehind(procDir, pid, place)
  } finally {
    closeSync(place)
  }
}

/**
 * The place that a link of /proc leads to, which is not opened. Those in map_files wait for the lock of the process's memory,
 * so who opens what is there goes on by /proc/self/fd, and follows the link once.
 */
export function openPlace(link: string): number {
  return openSync(link, O_PATH)
}

/** As `mayHangAt`, of an open place. */
export function mayHangBehind(procDir: string, pid: number, place: number): boolean {
  const id = mountOf(place)
  const hosts = hostsMounts(procDir)
  if (isSameNamespace(procDir, pid)) return hosts.get(id)?.mayHang ?? true
  const own = mountsIn(`${procDir}/${pid}/mountinfo`, mostOwnBytes)
  if (own === undefined) return true
  const mount = own.get(id)
  if (mount === undefined) return hosts.get(id)?.mayHang ?? true
  if (mount.mayHang) return true
  if (mount.type !== 'overlay' || isOfHost(procDir, pid)) return false
  for (const { major, minor, mayHang } of hosts.values())
    if (major === mount.major && minor === mount.minor) return mayHang
  return true
}

/** Whether a process is in the agent's user namespace: what is mounted for it, root has mounted. */
export function isOfHost(procDir: string, pid: number): boolean {
  return userNamespace(procDir, pid) === userNamespace(procDir, 'self')
}

function userNamespace(procDir: string, pid: number | 'self'): string {
  // '': a kernel without them, or a process that ended, which has no files either.
  return linkText(`${procDir}/${pid}/ns/user`)
}

/** The number of a mount in mountinfo, by what the kernel says of a descriptor: the file system is not asked. */
function mountOf(fd: number): string {
  return /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? ''
}

/** Whether a process has the mounts of the host's first one. */
function isSameNamespace(procDir: string, pid: number): boolean {
  try {
    return readlinkSync(`${procDir}/${pid}/ns/mnt`) === readlinkSync(`${procDir}/1/ns/mnt`)
  } catch {
    return false
  }
}

/** The last look at the host's mounts. */
let last: { readonly procDir: string; readonly ms: number; readonly mounts: Mounts } | undefined

/** As the first process sees them: an agent in a container has others. Hosts of many containers have thousands. */
function hostsMounts(procDir: string): Mounts {
  const now = performance.now()
  if (last?.procDir === procDir && now - last.ms < goodForMs) return last.mounts
  const mounts =
    mountsIn(`${procDir}/1/mountinfo`, mostHostBytes) ?? mountsIn('/proc/self/mountinfo', mostHostBytes)
  last = { procDir, ms: now, mounts: mounts ?? new Map() }
  return last.mounts
}

/**
 * Undefined: there are none, or more than `most` bytes of them: users make as many as they like in
 * namespaces of their own, with paths of any length.
 */
function mountsIn(path: string, most: number): Mounts | undefined {
  const bytes = beginningOf(path, most + 1)
  if (bytes.length === 0 || bytes.length > most) return undefined
  const mounts = parseMounts(bytes, '/')
  const lines = bytes.toString('latin1').split('\n')
  return new Map(
    mounts.map(({ type, major, minor, mayHang }, i) => [
      lines[i]!.slice(0, lines[i]!.indexOf(' ')),
      { type, major, minor, mayHang },
    ]),
  )
}

function beginningOf(path: string, most: number): Buffer {
  const parts: Buffer[] = []
  let length = 0
  try {
    const fd = openSync(path, 'r')
    try {
      for (let read = -1; read !== 0 && length < most; length += read) {
        const part = Buffer.allocUnsafe(Math.min(partBytes, most - length))
        read = readSync(fd, part)
        parts.push(part.subarray(0, read))
      }
    } finally {
      closeSync(fd)
    }
  } catch {
    return Buffer.alloc(0) // it ended, or there is none
  }
  return Buffer.concat(parts, length)
}
