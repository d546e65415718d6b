// Determines, without accessing it, whether a file of another process is on a file system that may hang.

import { closeSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { linkText } from '../foundation/lib/optional-files.ts'
import { type Mount, parseMounts } from './mounts.ts'

/** References a path without opening it (open(2)); the runtime has no constant for it. */
const O_PATH = 0o10000000
/**
 * Limits of a list of mounts: of a separate namespace (containers have some 30, at 150 bytes each), and of the host.
 */
const mostOwnBytes = 256 * 1024
const mostHostBytes = 8 * 1024 * 1024
const partBytes = 64 * 1024
/** How long the host's mounts, which are root's, are cached, in milliseconds. */
const goodForMs = 1_000

/** By mount id. */
type Mounts = ReadonlyMap<string, Pick<Mount, 'type' | 'major' | 'minor' | 'mayHang'>>

/**
 * True if accessing the target of a /proc link (exe, root, map_files) may block forever: its mount is on the network,
 * served by another program, or not trusted. Users may mount their own file systems in their own namespaces, and
 * overlays (overlayfs) on top, which answer only while those do. Such an overlay is trusted only if the host has the
 * same one mounted, as it has those of containers. A mount that neither the process nor the host lists is not trusted
 * either, as descriptors can be passed on; nor is one in a list above the size limit. Throws if there is no such link.
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
 * References the target of a /proc link without opening it. Links in map_files wait for the lock of the process's
 * memory, so code that opens the target continues through /proc/self/fd, and follows the link only once.
 */
export function openPlace(link: string): number {
  return openSync(link, O_PATH)
}

/** Like `mayHangAt`, for a reference from `openPlace`. */
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

/** True if a process is in the agent's user namespace: its mounts were made by root. */
export function isOfHost(procDir: string, pid: number): boolean {
  return userNamespace(procDir, pid) === userNamespace(procDir, 'self')
}

function userNamespace(procDir: string, pid: number | 'self'): string {
  // '': a kernel without them, or a process that exited, which has no files either.
  return linkText(`${procDir}/${pid}/ns/user`)
}

/** The mount id in mountinfo, from the kernel's data about a descriptor: does not access the file system. */
function mountOf(fd: number): string {
  return /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? ''
}

/** True if a process has the host's initial mount namespace. */
function isSameNamespace(procDir: string, pid: number): boolean {
  try {
    return readlinkSync(`${procDir}/${pid}/ns/mnt`) === readlinkSync(`${procDir}/1/ns/mnt`)
  } catch {
    return false
  }
}

/** The host's mounts as last read. */
let last: { readonly procDir: string; readonly ms: number; readonly mounts: Mounts } | undefined

/** As process 1 sees them: an agent in a container has others. Hosts with many containers have thousands. */
function hostsMounts(procDir: string): Mounts {
  const now = performance.now()
  if (last?.procDir === procDir && now - last.ms < goodForMs) return last.mounts
  const mounts =
    mountsIn(`${procDir}/1/mountinfo`, mostHostBytes) ?? mountsIn('/proc/self/mountinfo', mostHostBytes)
  last = { procDir, ms: now, mounts: mounts ?? new Map() }
  return last.mounts
}

/**
 * Undefined: there are none, or more than `most` bytes: users can create any number in their own namespaces, with paths
 * of any length.
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
    return Buffer.alloc(0) // it exited, or there is none
  }
  return Buffer.concat(parts, length)
}
