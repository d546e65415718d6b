// Archives that a Linux kernel unpacks as its first root file system (initramfs; the format is cpio's "newc").

import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const directory = 0o040000
const regular = 0o100000
const symbolic = 0o120000

/** Writes an archive, in which a later entry replaces one of the same name. Everything in it belongs to root. */
export class CpioWriter {
  readonly #file: number
  readonly #directories = new Set<string>([''])
  #inode = 0

  constructor(path: string) {
    this.#file = openSync(path, 'wx')
  }

  addFile(path: string, content: string | Uint8Array, mode = 0o644): void {
    this.#add(path, regular | mode, Buffer.from(content))
  }

  addLink(path: string, target: string): void {
    this.#add(path, symbolic | 0o777, Buffer.from(target))
  }

  /** A directory, and those above it that were not added yet. */
  addDirectory(path: string, mode = 0o755): void {
    const name = relative(path)
    if (name === '' || this.#directories.has(name)) return
    this.#directories.add(name)
    this.#add(name, directory | mode, Buffer.alloc(0))
  }

  /** A file, link or directory of this host with all below it; `skip` says which paths, as the archive has them, are left out. */
  addTree(source: string, path: string, skip: (path: string) => boolean = () => false): void {
    if (skip(path)) return
    const { mode } = lstatSync(source)
    const kind = mode & 0o170000
    if (kind === symbolic) this.addLink(path, readlinkSync(source))
    else if (kind === regular) this.addFile(path, readFileSync(source), mode & 0o7777)
    if (kind !== directory) return
    this.addDirectory(path, mode & 0o7777)
    for (const name of readdirSync(source)) this.addTree(join(source, name), join(path, name), skip)
  }

  close(): void {
    this.#write('TRAILER!!!', 0, Buffer.alloc(0))
    closeSync(this.#file)
  }

  #add(path: string, mode: number, content: Uint8Array): void {
    const name = relative(path)
    this.addDirectory(name.slice(0, Math.max(0, name.lastIndexOf('/'))))
    this.#write(name, mode, content)
  }

  #write(name: string, mode: number, content: Uint8Array): void {
    // Inode, mode, user, group, links, time, size, device and device of the node (each in two parts), name, checksum.
    const fields = [
      ++this.#inode,
      mode,
      0,
      0,
      1,
      0,
      content.length,
      0,
      0,
      0,
      0,
      Buffer.byteLength(name) + 1,
      0,
    ]
    const head = `070701${fields.map(field => field.toString(16).padStart(8, '0')).join('')}${name}\0`
    for (const part of [Buffer.from(head), content]) {
      writeSync(this.#file, part)
      writeSync(this.#file, Buffer.alloc(-part.length & 3))
    }
  }
}

function relative(path: string): string {
  return path.replace(/^\/+/, '')
}
