// A file system in memory that knows what of it is on the disk, fails where a test says so, and gives the states that a
// loss of power may leave: of what was not synced any part may be there, torn at any byte, as zeros, or in another order.
// What happened in a directory that was not synced may be there or not, each step for itself.

import { basename, dirname } from 'node:path'
import type { Files } from '../../src/pipeline/disk/log.ts'

/** A number from 0 to below `below`. */
export type Random = (below: number) => number

/** The same numbers for the same seed (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  return below => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** Pages of a file get to the disk one by one. */
const sectorBytes = 512

interface Node {
  data: Buffer
  /** As it is on the disk. */
  durable: Buffer
  /** What changed since, in order: the contents after each step. */
  steps: Buffer[]
  /** A sync failed: what was not on the disk then never gets there. */
  poisoned: boolean
  /** Which sync it was that made it durable. */
  synced: number
  /** Reading what touches this byte fails with EIO. */
  badByte?: number
}

type Change = (names: Map<string, Node>) => void

interface Directory {
  readonly names: Map<string, Node>
  durable: Map<string, Node>
  changes: Change[]
  synced: number
}

export class ShadowFiles implements Files {
  /** All files together take no more. */
  capacityBytes = Number.POSITIVE_INFINITY
  /** Error codes of the next calls by name (`write`, `sync`, …): thrown, in order; '' lets one pass. */
  readonly failures = new Map<string, string[]>()
  /** Calls so far: each is a moment at which the power may fail. */
  calls = 0
  /** Called after every change. */
  changed: () => void = () => {}
  readonly #directories = new Map<string, Directory>()
  readonly #open = new Map<number, { node?: Node; directory?: Directory; position?: number }>()
  #nextFd = 3
  #syncs = 0

  get openFiles(): number {
    return this.#open.size
  }

  /** The contents of a file, to be changed as damage does. */
  contents(path: string): Buffer {
    return this.#node(path).data
  }

  /** A byte of a file that the disk cannot read. */
  spoil(path: string, at: number): void {
    this.#node(path).badByte = at
  }

  /** Puts a file there, on the disk at once. */
  put(path: string, data: Buffer): void {
    const directory = this.#directory(dirname(path))
    const node = { data, durable: data, steps: [], poisoned: false, synced: 0 }
    directory.names.set(basename(path), node)
    directory.durable.set(basename(path), node)
  }

  /** What stands there after a loss of power. */
  afterPowerLoss(random: Random): ShadowFiles {
    const after = new ShadowFiles()
    for (const [path, directory] of this.#directories) {
      const names = new Map(directory.durable)
      for (const change of survivingChanges(directory.changes, random)) change(names)
      after.makeDirectory(path)
      for (const [name, node] of names) after.put(`${path}/${name}`, survivingBytes(node, random))
    }
    return after
  }

  /** As it is, for another process: the first one was killed. */
  afterKill(): ShadowFiles {
    const after = new ShadowFiles()
    for (const [path, directory] of this.#directories) {
      after.makeDirectory(path)
      for (const [name, node] of directory.names) after.put(`${path}/${name}`, Buffer.from(node.data))
    }
    return after
  }

  list(directory: string): string[] {
    this.#call('list')
    return [...this.#directory(directory).names.keys()]
  }

  makeDirectory(directory: string): void {
    this.#call('makeDirectory')
    if (this.#directories.has(directory)) return
    this.#directories.set(directory, { names: new Map(), durable: new Map(), changes: [], synced: 0 })
  }

  open(path: string, mode: 'append' | 'update' | 'read'): number {
    this.#call('open')
    const fd = this.#nextFd++
    const itself = this.#directories.get(path)
    if (itself) {
      this.#open.set(fd, { directory: itself })
      return fd
    }
    const directory = this.#directory(dirname(path))
    const name = basename(path)
    let node = directory.names.get(name)
    if (!node && mode !== 'append') throw failure('ENOENT', path)
    if (!node) {
      const data = Buffer.alloc(0)
      const made: Node = { data, durable: data, steps: [], poisoned: false, synced: 0 }
      node = made
      this.#change(directory, names => names.set(name, made))
    }
    this.#open.set(fd, mode === 'update' ? { node, position: 0 } : { node })
    return fd
  }

  write(fd: number, parts: readonly Uint8Array[]): number {
    this.#call('write')
    const node = this.#nodeOf(fd)
    const bytes = Buffer.concat(parts)
    const open = this.#open.get(fd)!
    const at = open.position ?? node.data.length
    const room = node.data.length - at + this.capacityBytes - this.#usedBytes()
    if (room <= 0 && bytes.length > 0) throw failure('ENOSPC', 'write')
    const part = bytes.subarray(0, Math.min(bytes.length, room))
    this.#step(node, Buffer.concat([node.data.subarray(0, at), part, node.data.subarray(at + part.length)]))
    if (open.position !== undefined) open.position += part.length
    return part.length
  }

  read(fd: number, into: Uint8Array, position: number): number {
    this.#call('read')
    const { data, badByte } = this.#nodeOf(fd)
    if (badByte !== undefined && position <= badByte && badByte < position + into.length)
      throw failure('EIO', 'read')
    return data.copy(into, 0, position, position + into.length)
  }

  size(fd: number): number {
    return this.#nodeOf(fd).data.length
  }

  truncate(fd: number, size: number): void {
    this.#call('truncate')
    const node = this.#nodeOf(fd)
    const data = Buffer.alloc(size)
    node.data.copy(data)
    this.#step(node, data)
  }

  async sync(fd: number): Promise<void> {
    const done = this.#beginSync(fd)
    await new Promise(setImmediate)
    done()
    this.changed()
  }

  syncNow(fd: number): void {
    this.#beginSync(fd)()
    this.changed()
  }

  syncDirectory(path: string): void {
    this.#call('syncDirectory')
    const directory = this.#directory(path)
    directory.durable = new Map(directory.names)
    directory.changes = []
    directory.synced = ++this.#syncs
    this.changed()
  }

  close(fd: number): void {
    if (!this.#open.delete(fd)) throw failure('EBADF', 'close')
  }

  rename(from: string, to: string): void {
    this.#call('rename')
    const node = this.#node(from)
    this.#change(this.#directory(dirname(from)), names => {
      if (names.get(basename(from)) === node) names.delete(basename(from))
      names.set(basename(to), node)
    })
  }

  remove(path: string): void {
    this.#call('remove')
    const node = this.#node(path)
    this.#change(this.#directory(dirname(path)), names => {
      if (names.get(basename(path)) === node) names.delete(basename(path))
    })
  }

  space(): { free: number; total: number } {
    const total = Math.min(this.capacityBytes, 2 ** 40)
    return { free: total - this.#usedBytes(), total }
  }

  #usedBytes(): number {
    let bytes = 0
    for (const { names } of this.#directories.values())
      for (const { data } of names.values()) bytes += data.length
    return bytes
  }

  /** Gives what makes it durable as it is now. */
  #beginSync(fd: number): () => void {
    const { node, directory } = this.#open.get(fd) ?? {}
    if (!node && !directory) throw failure('EBADF', 'fdatasync')
    try {
      this.#call('sync')
    } catch (error) {
      if (node) node.poisoned = true
      throw error
    }
    const number = ++this.#syncs
    // One that began later and has ended made all of this durable, and more.
    const isLate = (last: number) => last > number
    if (directory) {
      const names = new Map(directory.names)
      const count = directory.changes.length
      return () => {
        if (isLate(directory.synced)) return
        directory.synced = number
        directory.durable = names
        directory.changes.splice(0, count)
      }
    }
    if (!node || node.poisoned) return () => {}
    const { data } = node
    const count = node.steps.length
    return () => {
      if (isLate(node.synced)) return
      node.synced = number
      node.durable = data
      node.steps.splice(0, count)
    }
  }

  #change(directory: Directory, change: Change): void {
    change(directory.names)
    directory.changes.push(change)
    this.changed()
  }

  #step(node: Node, data: Buffer): void {
    node.data = data
    node.steps.push(data)
    this.changed()
  }

  #call(name: string): void {
    this.calls++
    const code = this.failures.get(name)?.shift()
    if (code) throw failure(code, name)
  }

  #directory(path: string): Directory {
    const directory = this.#directories.get(path)
    if (!directory) throw failure('ENOENT', path)
    return directory
  }

  #node(path: string): Node {
    const node = this.#directory(dirname(path)).names.get(basename(path))
    if (!node) throw failure('ENOENT', path)
    return node
  }

  #nodeOf(fd: number): Node {
    const node = this.#open.get(fd)?.node
    if (!node) throw failure('EBADF', String(fd))
    return node
  }
}

/** In order up to some point, as a journal keeps them, or any of them. */
function survivingChanges(changes: readonly Change[], random: Random): readonly Change[] {
  if (random(2) === 0) return changes.slice(0, random(changes.length + 1))
  return changes.filter(() => random(2) === 0)
}

function survivingBytes(node: Node, random: Random): Buffer {
  const { durable, steps } = node
  const newest = steps.at(-1)
  if (!newest || node.poisoned) return Buffer.from(durable)
  const way = random(5)
  if (way === 0) return Buffer.from(durable)
  if (way === 1) return Buffer.from(newest)
  const step = steps[random(steps.length)] ?? newest
  if (way === 2)
    return Buffer.from(step.subarray(0, Math.min(step.length, durable.length + random(step.length + 1))))
  // The size is there, and of the bytes any sectors; the others are as they were, or zeros.
  const size = way === 3 ? step.length : random(step.length + 1)
  const bytes = Buffer.alloc(Math.max(size, Math.min(durable.length, step.length)))
  durable.copy(bytes)
  for (let at = 0; at < bytes.length; at += sectorBytes)
    if (random(2) === 0) step.copy(bytes, at, at, Math.min(step.length, at + sectorBytes))
  return bytes
}

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code })
}
