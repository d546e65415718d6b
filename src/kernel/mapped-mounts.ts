// Whether a file of another process lies where asking for it may never be answered, found out without asking.

import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { parseMounts } from './mounts.ts'

/** A place without opening what is there (open(2)); the runtime does not name it. */
const O_PATH = 0o10000000

/**
 * Whether looking at what a link of /proc leads to (exe, root, map_files) may wait for ever: its mount is of a server or
 * of another program, or one that nobody vouches for. Users may mount file systems of their own in namespaces of their
 * own, and an overlay (overlayfs) upon them, which answers everybody where those answer them alone. Such an overlay is
 * believed only where the host has the same one mounted, as those of containers are. A mount that neither the process
 * nor the host shows is not believed either: descriptors are passed on. Throws where there is no such link.
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
  const mounts = contentOf(`${procDir}/${pid}/mountinfo`)
  const line = lineOf(mounts, id)
  if (line === '') return isFar(hostsMounts(procDir), id) ?? true
  if (isFar(mounts, id) ?? true) return true
  const [mount] = parseMounts(Buffer.from(`${line}\n`, 'latin1'), '/')
  if (mount?.type !== 'overlay' || isOfHost(procDir, pid)) return false
  const same = parseMounts(hostsMounts(procDir), '/').find(
    ({ major, minor }) => major === mount.major && minor === mount.minor,
  )
  return same?.mayHang ?? true
}

/** Whether a process is in the agent's user namespace: what is mounted for it, root has mounted. */
export function isOfHost(procDir: string, pid: number): boolean {
  return userNamespace(procDir, pid) === userNamespace(procDir, 'self')
}

function userNamespace(procDir: string, pid: number | 'self'): string {
  try {
    return readlinkSync(`${procDir}/${pid}/ns/user`)
  } catch {
    return '' // a kernel without them, or a process that ended: then it has no files either
  }
}

/** The number of a mount in mountinfo, by what the kernel says of a descriptor: the file system is not asked. */
function mountOf(fd: number): string {
  return /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? ''
}

/** Undefined where it is not among them. */
function isFar(mounts: Buffer, id: string): boolean | undefined {
  const line = lineOf(mounts, id)
  if (line === '') return undefined
  const all = parseMounts(mounts, '/')
  const at = mounts.toString('latin1').split('\n').indexOf(line)
  return all[at]?.mayHang
}

function lineOf(mounts: Buffer, id: string): string {
  const text = mounts.toString('latin1')
  const from = text.startsWith(`${id} `) ? 0 : text.indexOf(`\n${id} `) + 1
  if (id === '' || (from === 0 && !text.startsWith(`${id} `))) return ''
  const end = text.indexOf('\n', from)
  return text.slice(from, end < 0 ? text.length : end)
}

/** As the first process sees them: an agent in a container has others. */
function hostsMounts(procDir: string): Buffer {
  const mounts = contentOf(`${procDir}/1/mountinfo`)
  return mounts.length > 0 ? mounts : contentOf('/proc/self/mountinfo')
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    return Buffer.alloc(0) // it ended, or there is none
  }
}
