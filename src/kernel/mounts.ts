// The mounts of a host, and which of them may hang.

import { lstatSync, readlinkSync } from 'node:fs'
import { posix } from 'node:path'
import { utf8Text } from '../foundation/lib/utf8-text.ts'
import type { Tree } from '../foundation/model/host.ts'

/** One line of mountinfo (proc(5)). Texts as the kernel writes them, with the mount point decoded. */
export interface Mount {
  readonly device: string
  readonly type: string
  /** Its path on the host. */
  readonly point: string
  /** Its path in this process, byte for byte. */
  readonly path: Buffer
  readonly major: string
  readonly minor: string
  readonly isReadOnly: boolean
  /** Accessing it may wait for a server or another program, */
  readonly mayHang: boolean
  /** or for one on the way to it. */
  readonly isRemote: boolean
  /** Served by a user other than root and this process's (FUSE). */
  readonly isUsers: boolean
}

/** File systems that use only this host's memory and devices. All others may hang. */
const localTypes = new Set(
  `adfs affs apfs bcachefs befs bfs binfmt_misc bpf btrfs cgroup cgroup2 configfs cpuset cramfs debugfs devpts devtmpfs
  efivarfs erofs exfat ext2 ext3 ext4 f2fs fusectl hfs hfsplus hpfs hugetlbfs iso9660 jffs2 jfs minix mqueue msdos nilfs2
  nsfs ntfs ntfs3 omfs overlay proc pstore qnx4 qnx6 ramfs reiserfs romfs rootfs rpc_pipefs securityfs selinuxfs smackfs
  squashfs sysfs tmpfs tracefs ubifs udf ufs vfat xfs zfs zonefs`.split(/\s+/),
)

/** Reads mountinfo, and parses it only if it has changed. */
export class MountTable {
  readonly #proc: Tree
  readonly #files: readonly string[]
  readonly #root: string
  #bytes: Buffer = Buffer.alloc(0)
  #mounts: readonly Mount[] | undefined

  /** `files`: paths below /proc, of which the first existing one is read. `root`: as for `parseMounts`. */
  constructor(proc: Tree, files: readonly string[], root: string) {
    this.#proc = proc
    this.#files = files
    this.#root = root
  }

  /** The same array until something changes. Throws if unreadable. */
  read(): readonly Mount[] {
    const bytes = this.#content()
    if (this.#mounts !== undefined && this.#bytes.equals(bytes)) return this.#mounts
    this.#bytes = Buffer.from(bytes)
    this.#mounts = undefined
    this.#mounts = parseMounts(this.#bytes, this.#root)
    return this.#mounts
  }

  /** Empty without a list of mounts. */
  readIfPresent(): readonly Mount[] {
    try {
      return this.read()
    } catch {
      return [] // /proc of another host, or none
    }
  }

  #content(): Buffer {
    const last = this.#files.length - 1
    for (let i = 0; i < last; i++) {
      try {
        return this.#proc.bytes(this.#files[i]!)
      } catch (error) {
        // /proc may hide other users' processes from this one (hidepid).
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      }
    }
    return this.#proc.bytes(this.#files[last]!)
  }
}

/** The mounts in order. `root` is the host's root directory in this process. Throws on an invalid line. */
export function parseMounts(bytes: Buffer, root: string): readonly Mount[] {
  const lines = bytes.toString('latin1').split('\n')
  if (lines.at(-1) === '') lines.pop()
  if (lines.length === 0) throw new Error('cannot read mountinfo: it is empty')
  const base = latin1(posix.resolve(root))
  const found = lines.map(line => parseLine(line, base === '/' ? '' : base))
  const remote = new Set<string>()
  for (const { point, type, options } of found)
    if (!localTypes.has(type) || layers(type, options).some(layer => isWithin(layer, remote)))
      remote.add(point)
  return found.map(({ point, options, ...mount }) => ({
    ...mount,
    isUsers: isUsers(mount.type, options),
    point: utf8(point),
    path: Buffer.from(base === '/' ? point : point === '/' ? base : `${base}${point}`, 'latin1'),
    mayHang: remote.has(point),
    isRemote: isWithin(point, remote),
  }))
}

/** The kernel's limit of links in one path. */
const mostLinks = 40

/** Finds out which paths of this process may hang, even through symbolic links, without accessing any that may. */
export class RemotePaths {
  readonly #remote: ReadonlySet<string>
  readonly #procs: ReadonlySet<string>
  /** Targets by path; undefined: not a link. */
  readonly #links = new Map<string, string | undefined>()

  /** `mounts` are of this process. `trusted`: a path that counts as local, with all mounts on the way to it. */
  constructor(mounts: readonly Mount[], trusted?: string) {
    const points = (wanted: (mount: Mount) => boolean) =>
      new Set(mounts.filter(wanted).map(({ path }) => path.toString('latin1')))
    const remote = points(({ mayHang }) => mayHang)
    if (trusted !== undefined)
      for (const each of ancestors(latin1(posix.resolve(trusted)))) remote.delete(each)
    this.#remote = remote
    this.#procs = points(({ type }) => type === 'proc')
  }

  has(path: string): boolean {
    return this.#remote.size > 0 && this.#pointOf(path, this.#remote) !== undefined
  }

  /**
   * The mount point, as latin1 bytes, that a path leads to and that may hang; or that of /proc, whose links are
   * misleading.
   */
  pointOf(path: string): string | undefined {
    return this.#pointOf(path, this.#remote) ?? this.#pointOf(path, this.#procs)
  }

  #pointOf(path: string, points: ReadonlySet<string>): string | undefined {
    if (points.has('/')) return '/'
    const whole = path.startsWith('/') ? path : `${process.cwd()}/${path}`
    const rest = latin1(whole).split('/').reverse()
    let at = ''
    for (let links = 0; rest.length > 0; ) {
      const part = rest.pop()!
      if (part === '' || part === '.') continue
      if (part === '..') {
        at = at.slice(0, Math.max(0, at.lastIndexOf('/')))
        continue
      }
      const next = `${at}/${part}`
      if (points.has(next)) return next
      const target = this.#target(next)
      if (target === undefined) at = next
      else if (++links > mostLinks) return undefined
      else {
        if (target.startsWith('/')) at = ''
        rest.push(...target.split('/').reverse())
      }
    }
    return undefined
  }

  #target(path: string): string | undefined {
    if (this.#links.has(path)) return this.#links.get(path)
    let target: string | undefined
    try {
      const bytes = Buffer.from(path, 'latin1')
      // Links in /proc do not lead to their target text: /proc/1/root is another root.
      if (lstatSync(bytes, { throwIfNoEntry: false })?.isSymbolicLink() && !isWithin(path, this.#procs))
        target = readlinkSync(bytes, { encoding: 'latin1' })
    } catch {
      // A path beyond something inaccessible is inaccessible as well.
    }
    this.#links.set(path, target)
    return target
  }
}

interface Line {
  /** Byte by byte, in latin1. */
  readonly point: string
  readonly device: string
  readonly type: string
  readonly options: string
  readonly major: string
  readonly minor: string
  readonly isReadOnly: boolean
}

/** `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`: the hyphen ends the tags. */
function parseLine(line: string, base: string): Line {
  const fields = line.split(' ')
  const last = fields.length - 1
  const device = /^(\d+):(\d+)$/.exec(fields[2] ?? '')
  if (last < 9 || device === null || fields[last - 3] !== '-' || !fields[4]!.startsWith('/'))
    throw new Error(`cannot read mountinfo: no mount in ${JSON.stringify(line.slice(0, 100))}`)
  const options = fields[last]!
  const point = decoded(fields[4]!)
  return {
    // A process that has the host's root below its own may see the host's mounts by their paths there.
    point: point === base ? '/' : point.startsWith(`${base}/`) ? point.slice(base.length) : point,
    device: utf8(fields[last - 1]!),
    type: utf8(fields[last - 2]!),
    options,
    major: device[1]!,
    minor: device[2]!,
    // Of the mount, or of the file system that mounts share; ext4 shows the cause since Linux 6.15.
    isReadOnly: [fields[5]!, options].some(list => /(^|,)(ro|emergency_ro)(,|$)/.test(list)),
  }
}

function isUsers(type: string, options: string): boolean {
  const user = /^fuse/.test(type) ? /(?:^|,)user_id=(\d+)/.exec(options)?.[1] : undefined
  return user !== undefined && user !== '0' && Number(user) !== process.geteuid?.()
}

/** Directories that an overlay reads in turn: of the read-only ones, only the first. */
function layers(type: string, options: string): readonly string[] {
  if (type !== 'overlay') return []
  return options.split(',').flatMap(option => /^(?:upperdir|lowerdir)=(\/[^:]*)/.exec(option)?.[1] ?? [])
}

function isWithin(path: string, directories: ReadonlySet<string>): boolean {
  return directories.size > 0 && ancestors(path).some(each => directories.has(each))
}

/** An absolute path and its parents, root last. */
function ancestors(path: string): readonly string[] {
  const all: string[] = []
  for (let at = path; at !== '' && at !== '/'; at = at.slice(0, at.lastIndexOf('/'))) all.push(at)
  return [...all, '/']
}

/** Spaces, tabs, newlines and backslashes are encoded as `\040` and the like. */
function decoded(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  )
}

function latin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}

function utf8(text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  return utf8Text(bytes, 0, bytes.length)
}
