// Debian systems to install into and to throw away: layers over one that stays as it is.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { ownMirror } from '../../tools/debian-mirror.ts'

const folder = resolve(import.meta.dirname, '../../build/peers')

/** A fresh Debian with systemd and nothing else, made once; undefined where it cannot be had. */
export function debianRoot(): string | undefined {
  const mirror = ownMirror()
  if (mirror === undefined) return undefined
  const kept = join(folder, `debian-root-${mirror.suite}`)
  if (existsSync(kept)) return kept
  mkdirSync(folder, { recursive: true })
  const own = mkdtempSync(`${kept}.`)
  try {
    const made = join(own, 'root')
    const options = ['--variant=minbase', '--include=systemd', mirror.suite, made, mirror.uri]
    if (spawnSync('debootstrap', options, { stdio: 'ignore' }).status !== 0) return undefined
    if (!existsSync(kept)) renameSync(made, kept)
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
  return kept
}

/** What a command said and how it ended. */
export interface Outcome {
  readonly code: number | null
  readonly out: string
  readonly talk: string
}

/** A copy of a system, with this kernel's /proc, /sys and /dev, that is gone when it is closed or this process ends. */
export class ThrowawayRoot {
  /** Where the test finds its files. */
  readonly path: string
  readonly #holder: ChildProcess
  readonly #inside: string
  readonly #scratch: string
  readonly #lower: string

  private constructor(holder: ChildProcess, lower: string, scratch: string) {
    const inside = join(scratch, 'root')
    this.#lower = lower
    this.#holder = holder
    this.#inside = inside
    this.#scratch = scratch
    this.path = `/proc/${holder.pid}/root${inside}`
  }

  /** Opens a copy of the system at `lower`; `/` is a copy of this one. */
  static async open(lower: string): Promise<ThrowawayRoot> {
    const scratch = mkdtempSync(join(tmpdir(), 'svc-root-'))
    // What changes lies in memory: a layer cannot lie within the one below it.
    const script = `set -e
mount -t tmpfs -o mode=755 svc-root '${scratch}'
cd '${scratch}'
mkdir upper work root
mount -t overlay svc-root -o lowerdir='${lower}',upperdir=upper,workdir=work root
for each in proc sys dev; do mount --rbind /$each root/$each; done
mount -t tmpfs -o mode=1777 svc-tmp root/tmp
echo ready
exec cat >/dev/null`
    const holder = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const lines = createInterface(holder.stdout)[Symbol.asyncIterator]()
    const { done } = await lines.next()
    if (done) {
      rmSync(scratch, { recursive: true, force: true })
      throw new Error(`cannot lay a layer over ${lower}: see the line above`)
    }
    return new ThrowawayRoot(holder, lower, scratch)
  }

  /** Starts a program in it, with few variables. */
  start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
    return spawn('nsenter', this.#words(command, args, env), { stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** Runs one to its end, two minutes at most. */
  run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Outcome {
    const { status, stdout, stderr } = spawnSync('nsenter', this.#words(command, args, env), {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      timeout: 120_000,
    })
    return { code: status, out: stdout, talk: stderr }
  }

  /** Paths of what is not as in the system below: what is new, then what is gone, and what was written to. */
  changes(): { readonly added: string[]; readonly removed: string[]; readonly written: string[] } {
    const layer = join(this.path, '..', 'upper')
    const changes = { added: [] as string[], removed: [] as string[], written: [] as string[] }
    for (const path of readdirSync(layer, { recursive: true, encoding: 'utf8' }).sort()) {
      const now = lstatSync(join(layer, path))
      const before = lstatSync(join(this.#lower, path), { throwIfNoEntry: false })
      // The layer has a device for what is gone (kernel, filesystems/overlayfs.rst).
      if (now.isCharacterDevice() && now.rdev === 0) changes.removed.push(path)
      else if (before === undefined) changes.added.push(path)
      else if (!now.isDirectory()) changes.written.push(path)
    }
    return changes
  }

  async close(): Promise<void> {
    const ended = new Promise<void>(done => this.#holder.once('close', () => done()))
    this.#holder.stdin!.end()
    await ended
    rmSync(this.#scratch, { recursive: true, force: true })
  }

  #words(command: string, args: readonly string[], env: Readonly<Record<string, string>>): string[] {
    const variables = {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      LC_ALL: 'C',
      DEBIAN_FRONTEND: 'noninteractive',
      ...env,
    }
    const set = Object.entries(variables).map(([name, value]) => `${name}=${value}`)
    const target = ['--mount', '--target', String(this.#holder.pid)]
    return [...target, 'chroot', this.#inside, 'env', '-i', ...set, command, ...args]
  }
}
