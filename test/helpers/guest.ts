// owns: load
// A machine of its own for what no test may do to its host: Debian's kernel in qemu, over a root that is made of
// Debian's packages and a test's files, all of it in memory. It has no disk and no network.

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { unpackedPackages } from '../../tools/debian-packages.ts'
import { CpioWriter } from './cpio.ts'
import { onlyInSoak, soak } from './soak.ts'

/** systemd as the first process, its bus and logins, and the libraries of Node.js and of the native addon. */
const packages = [
  ...['bash', 'coreutils', 'usr-is-merged', 'systemd', 'dbus', 'libpam-systemd', 'libbpf1', 'libstdc++6'],
]
/** A kernel's package wants a builder of initial file systems; this one is small, and never runs. */
const kernelPackages = ['linux-image-cloud-amd64', 'tiny-initramfs']
const wanted = soak && process.arch === 'x64'
const root = wanted ? unpackedPackages('guest', packages) : undefined
/** That of Debian 12 errs in atomic operations of 16 bytes, of which kernels die or lose what programs count. */
const emulator = wanted ? unpackedPackages('qemu', ['qemu-system-x86'], { suite: 'trixie' }) : undefined

export const withoutGuest: string | false =
  onlyInSoak ||
  (process.arch !== 'x64'
    ? `a machine of its own needs x86-64, and this is ${process.arch}`
    : root === undefined || emulator === undefined
      ? 'a machine of its own needs packages of Debian 12 and 13, which apt-get cannot download here'
      : false)

/** Nothing in the machine reads these, and they are most of what packages have. */
const unread = /^\/(boot|usr\/(lib\/modules|share\/(doc|locale|man)))$/

/** What packages make when they are installed. */
const made = { '/var/run': '/run', '/usr/bin/sh': 'bash' }

/** The first program: it answers commands, and leaves the machine to another one where there is one. */
const init = `#!/bin/bash
export PATH=/usr/local/bin:/usr/bin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
/answer </dev/ttyS1 >/dev/ttyS1 &
exec "$@" </dev/console >/dev/console 2>&1
`
/** A line in Base64 for a line in Base64, as a terminal changes some bytes. */
const answer = `#!/bin/bash
stty raw -echo
echo ready
while read -r line; do
  bash -c "$(base64 -d <<<"$line")" </dev/null 2>&1 | base64 -w 0
  echo " \${PIPESTATUS[0]}"
done
`

export interface GuestOptions {
  /** Debian's suite that the kernel is of, for example `trixie`. Left out: that of this host. */
  readonly kernelOf?: string
  /** What the kernel's command line has besides, for example `lockdown=integrity`. */
  readonly parameters?: readonly string[]
  /** A directory of this host that is the machine's root. Left out: one with systemd, bash and what svc needs. */
  readonly root?: string
  /** Text by path. One that begins with #! may be run. */
  readonly files?: Readonly<Record<string, string>>
  /** Files, links and directories of this host, by their path in the machine. */
  readonly trees?: Readonly<Record<string, string>>
  /** By path. */
  readonly links?: Readonly<Record<string, string>>
  /** What the first program becomes; nothing starts by itself where it is left out. */
  readonly init?: readonly string[]
  /**
   * Left out: 2. With one, nothing is held up for longer than on a processor while others go on: an emulated one may be,
   * anywhere.
   */
  readonly processors?: number
  /**
   * Emulates all processors by one thread. Slower, and without the emulator's race where one processor runs what another
   * one changes: a kernel that switches its tracing on and off often dies of it ("Oops: int3").
   */
  readonly inTurns?: boolean
  /** The machine's memory, its files included. */
  readonly memoryMb?: number
  /** When it is ended, whatever it does. */
  readonly limitMs?: number
}

/** A machine that runs. */
export class Guest {
  readonly #child: ChildProcess
  readonly #directory: string
  readonly #replies: AsyncIterator<string>
  readonly #limit: NodeJS.Timeout
  #said = ''

  private constructor(child: ChildProcess, directory: string, limitMs: number) {
    this.#child = child
    this.#limit = setTimeout(() => {
      this.#said += `ended after ${limitMs} ms\n`
      child.kill('SIGKILL')
    }, limitMs)
    this.#directory = directory
    this.#replies = createInterface(child.stdout!)[Symbol.asyncIterator]()
    child.stderr!.on('data', text => {
      this.#said += text
    })
    child.stdin!.on('error', () => {}) // there is no reply, which says it
  }

  /** Starts a machine and waits until it takes commands. */
  static async start(options: GuestOptions = {}): Promise<Guest> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-guest-'))
    writeRoot(join(directory, 'root.cpio'), options)
    const guest = new Guest(
      startEmulator(directory, kernel(options.kernelOf), options),
      directory,
      options.limitMs ?? 600_000,
    )
    try {
      while ((await guest.#reply()) !== 'ready');
    } catch (error) {
      await guest.stop()
      throw error
    }
    rmSync(join(directory, 'root.cpio'))
    return guest
  }

  /** What the machine wrote to its console, and the emulator to standard error. */
  get console(): string {
    return `${this.#said}${readFileSync(join(this.#directory, 'console'), 'utf8')}`
  }

  /**
   * Runs a command by bash, as root, one at a time. Resolves with its output and errors once all who may write to them
   * have ended; rejects where its status is not 0.
   */
  async run(command: string): Promise<string> {
    this.#child.stdin!.write(`${Buffer.from(command).toString('base64')}\n`)
    const [output, status] = (await this.#reply()).split(' ')
    const text = Buffer.from(output!, 'base64').toString()
    if (status !== '0') throw new Error(`the guest ended "${command}" with status ${status}: ${text}`)
    return text
  }

  async stop(): Promise<void> {
    clearTimeout(this.#limit)
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = new Promise(resolve => this.#child.once('exit', resolve))
      this.#child.kill('SIGKILL')
      await gone
    }
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #reply(): Promise<string> {
    const { value, done } = await this.#replies.next()
    if (done) throw new Error(`the guest has ended: ${this.console}`)
    return value
  }
}

/** Path of the kernel of a suite. Throws where it cannot be had. */
function kernel(suite: string | undefined): string {
  const unpacked = unpackedPackages(`kernel-${suite ?? 'own'}`, kernelPackages, { suite })
  if (unpacked === undefined)
    throw new Error(`apt-get cannot download the kernel of ${suite ?? 'this suite'}`)
  const boot = join(unpacked, 'boot')
  const name = existsSync(boot) && readdirSync(boot).find(each => each.startsWith('vmlinuz-'))
  if (name) return join(boot, name)
  // Since Debian 14 the packages have it beside the modules.
  const modules = join(unpacked, 'usr/lib/modules')
  const release = readdirSync(modules).find(each => existsSync(join(modules, each, 'vmlinuz')))
  if (release === undefined) throw new Error(`the packages of ${suite ?? 'this suite'} have no kernel`)
  return join(modules, release, 'vmlinuz')
}

function writeRoot(path: string, options: GuestOptions): void {
  const { files = {}, trees = {}, links = {} } = options
  const archive = new CpioWriter(path)
  archive.addTree(options.root ?? root!, '/', each => unread.test(each))
  for (const [at, source] of Object.entries(trees)) archive.addTree(source, at)
  for (const [at, target] of Object.entries({ ...made, ...links })) archive.addLink(at, target)
  for (const [at, text] of Object.entries({ ...files, '/init': init, '/answer': answer }))
    archive.addFile(at, text, text.startsWith('#!') ? 0o755 : 0o644)
  archive.close()
}

function startEmulator(
  directory: string,
  kernel: string,
  {
    init = ['sleep', 'infinity'],
    memoryMb = 1024,
    parameters = [],
    processors = 2,
    inTurns = false,
  }: GuestOptions,
): ChildProcess {
  const libraries = join(emulator!, 'usr/lib/x86_64-linux-gnu')
  const qemu = [
    ...[join(libraries, 'ld-linux-x86-64.so.2'), '--library-path', libraries],
    join(emulator!, 'usr/bin/qemu-system-x86_64'),
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-nic', 'none'],
    ...['-L', join(emulator!, 'usr/share/qemu'), '-L', join(emulator!, 'usr/share/seabios')],
    // Emulated even where the host has KVM, which a host that is a machine itself may have broken.
    ...[
      '-accel',
      inTurns ? 'tcg,thread=single' : 'tcg',
      '-cpu',
      'max',
      '-smp',
      `${processors}`,
      '-m',
      `${memoryMb}`,
    ],
    ...['-serial', `file:${join(directory, 'console')}`],
    ...['-chardev', 'stdio,id=talk,signal=off', '-serial', 'chardev:talk'],
    ...['-kernel', kernel, '-initrd', join(directory, 'root.cpio')],
    ...['-append', ['console=ttyS0 quiet panic=-1', ...parameters, '--', ...init].join(' ')],
  ]
  // It ends with the test, however that ends.
  return spawn('setpriv', ['--pdeathsig', 'KILL', ...qemu], {
    stdio: 'pipe',
    env: { QEMU_MODULE_DIR: join(libraries, 'qemu') },
  })
}
