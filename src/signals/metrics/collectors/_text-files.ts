// Access to text files on local file systems, and on those that may hang.

import { closeSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { openForeign } from '../../../foundation/lib/foreign-file.ts'
import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import type { RemotePaths } from '../../../kernel/mounts.ts'
import type { RemoteFiles } from '../../../kernel/remote-files.ts'

export interface TextFile {
  readonly bytes: Buffer
  readonly mtimeSeconds: number
}

/** Access to directories and files. All methods reject with an error with a reason. */
export interface Access {
  /** Names in rising order. */
  list(directory: string): Promise<readonly string[]>
  read(path: string, mostBytes: number): Promise<TextFile>
  /** Stamp of the content: equal stamps mean equal content. Undefined if unknown. */
  stamp?(path: string): string | undefined
}

/** Age, in milliseconds, from which each change of a file has a new modification time. */
const settledMs = 1000

const local: Access = {
  list: async directory => readdirSync(directory).sort(),
  async read(path, mostBytes) {
    const { fd, stats: stat } = openForeign(posix.resolve(path))
    try {
      if (stat.size > mostBytes) throw new Error(`longer than ${mostBytes} bytes`)
      return { bytes: readFileSync(fd), mtimeSeconds: Math.floor(stat.mtimeMs / 1000) }
    } finally {
      closeSync(fd)
    }
  },
  stamp(path) {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat === undefined || Date.now() - Math.max(stat.mtimeMs, stat.ctimeMs) < settledMs) return undefined
    return `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`
  },
}

/** Access to files that may hang; gives up at the signal. */
export function remoteAccess(files: RemoteFiles, signal: AbortSignal): Access {
  return {
    list: directory => untilAborted(files.list(posix.resolve(directory)), signal),
    read: (path, mostBytes) => untilAborted(files.read(posix.resolve(path), mostBytes), signal),
  }
}

/** Access by the file system of each path. */
export function localOrRemote(paths: RemotePaths, remote: () => Access): Access {
  const of = (path: string) => (paths.has(path) ? remote() : local)
  return {
    list: directory => of(directory).list(directory),
    read: (path, mostBytes) => of(path).read(path, mostBytes),
    stamp: path => of(path).stamp?.(path),
  }
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(new Error('no answer in time'))
  })
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** Part of a path before its first wildcard. */
function withoutWildcards(pattern: string): string {
  const parts = pattern.split('/')
  const first = parts.findIndex(part => /[*?[\\]/.test(part))
  return first < 0 ? pattern : parts.slice(0, first).join('/') || (pattern.startsWith('/') ? '/' : '.')
}

/** Matches of a path with `*`, `?` and `[a-z]`; the path itself without matches. */
export async function expand(pattern: string, access: Access): Promise<readonly string[]> {
  const parts = pattern.split('/')
  const first = parts.findIndex(part => /[*?[\\]/.test(part))
  if (first < 0) return [pattern]
  let found = [withoutWildcards(pattern)]
  for (const part of parts.slice(first)) {
    if (part === '') continue
    const wanted = matching(part)
    if (wanted === undefined) return [pattern]
    const next: string[] = []
    for (const directory of found) {
      const names = await access.list(directory).catch(() => [])
      for (const name of names) if (wanted.test(name)) next.push(posix.join(directory, name))
    }
    found = next
  }
  return found.length > 0 ? found : [pattern]
}

/** Undefined if a bracket is not closed. */
function matching(part: string): RegExp | undefined {
  let source = ''
  for (let i = 0; i < part.length; i++) {
    const character = part[i]!
    if (character === '*') source += '.*'
    else if (character === '?') source += '.'
    else if (character === '[') {
      const set = /^\[(\^?)((?:\\.|[^\]\\])+)\]/s.exec(part.slice(i))
      if (set === null) return undefined
      source += `[${set[1]}${set[2]!.replaceAll('[', '\\[')}]`
      i += set[0].length - 1
    } else {
      const literal = character === '\\' ? (part[++i] ?? '\\') : character
      source += literal.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
    }
  }
  try {
    return linearRegExp(`(?s)^${source}$`)
  } catch {
    return undefined // an invalid range
  }
}
