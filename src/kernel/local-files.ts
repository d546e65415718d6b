import type { Tree } from '../foundation/model/host.ts'
import { type MountTable, RemotePaths } from './mounts.ts'

/** Maximum age of cached mounts and links. */
const freshMs = 1000

/**
 * A tree that excludes everything that could block this process when a server is down: mounts of network and FUSE file
 * systems in it, and links to them. Such paths are absent, or yield an error with the reason. The tree's own file
 * system is always read, as a host without it is down anyway.
 */
export class LocalFiles implements Tree {
  readonly root: string
  readonly #tree: Tree
  readonly #table: MountTable
  #remote = new RemotePaths([])
  #readAt = Number.NEGATIVE_INFINITY

  /** `table`: mounts of this process. */
  constructor(tree: Tree, table: MountTable) {
    this.root = tree.root
    this.#tree = tree
    this.#table = table
  }

  at(path: string): string {
    return this.#tree.at(path)
  }

  text(path: string): string {
    this.#refuseRemote(path)
    return this.#tree.text(path)
  }

  find(path: string): string | undefined {
    return this.#isRemote(path) ? undefined : this.#tree.find(path)
  }

  number(path: string): number | undefined {
    return this.#isRemote(path) ? undefined : this.#tree.number(path)
  }

  bytes(path: string): Buffer {
    this.#refuseRemote(path)
    return this.#tree.bytes(path)
  }

  list(path: string): readonly string[] {
    return this.#isRemote(path) ? [] : this.#tree.list(path)
  }

  directories(path: string): readonly string[] {
    return this.#isRemote(path) ? [] : this.#tree.directories(path)
  }

  link(path: string): string | undefined {
    return this.#isRemote(path) ? undefined : this.#tree.link(path)
  }

  real(path: string): string | undefined {
    return this.#isRemote(path) ? undefined : this.#tree.real(path)
  }

  exists(path: string): boolean {
    return !this.#isRemote(path) && this.#tree.exists(path)
  }

  #refuseRemote(path: string): void {
    if (this.#isRemote(path))
      throw new Error(`cannot read ${this.at(path)}: it is on a file system that may hang`)
  }

  #isRemote(path: string): boolean {
    const now = performance.now()
    if (now - this.#readAt >= freshMs) {
      this.#readAt = now
      this.#remote = new RemotePaths(this.#table.readIfPresent(), this.root)
    }
    return this.#remote.has(this.at(path))
  }
}
