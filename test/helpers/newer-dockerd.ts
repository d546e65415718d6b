// owns: host
// A Docker daemon that knows CAP_BPF, which that of Debian 12 does not: Debian 13's, only unpacked. It has no network but
// the host's, and keeps all that it makes in a directory of its own, which it sees as /run and /var/lib/docker.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { unpackedPackages } from '../../tools/debian-packages.ts'
import { until } from './program.ts'
import { onlyInSoak, soak } from './soak.ts'

const run = promisify(execFile)
/** Where containers look for the logs of others. */
const data = '/var/lib/docker'
const isRoot = process.getuid?.() === 0
const isWanted = isRoot && soak
const packages = isWanted
  ? unpackedPackages('docker', ['docker.io', 'docker-cli'], { suite: 'trixie' })
  : undefined
// Of all these programs runc alone asks for a newer C library than that of Debian 12, whose own runc knows CAP_BPF.
const older = isWanted ? unpackedPackages('docker', ['docker.io', 'busybox-static']) : undefined

export const withoutNewerDocker: string | false = !isWanted
  ? onlyInSoak || 'a Docker daemon is started by root'
  : packages === undefined || older === undefined
    ? 'a Docker daemon needs the package docker.io of Debian 12 and 13, which apt-get cannot download here'
    : false

/** What a command said and how it ended. */
export interface Said {
  readonly code: number
  readonly out: string
  readonly talk: string
}

export class NewerDockerd {
  readonly #dir = mkdtempSync(join(tmpdir(), 'svc-dockerd-'))
  readonly #child: ChildProcess
  /** What was made of /var/lib/docker to mount over it. */
  readonly #made = mkdirSync(data, { recursive: true })
  #told = ''

  private constructor() {
    for (const name of ['data', 'exec', 'run']) mkdirSync(join(this.#dir, name))
    const at = (name: string) => join(this.#dir, name)
    const options = [
      ...['--data-root', data, '--exec-root', at('exec'), '--pidfile', at('pid')],
      ...[
        '-H',
        'unix:///run/docker.sock',
        '--storage-driver=vfs',
        '--exec-opt',
        'native.cgroupdriver=cgroupfs',
      ],
      ...['--add-runtime', `older=${join(older!, 'usr/sbin/runc')}`, '--default-runtime', 'older'],
      ...['--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false'],
    ]
    // Its mounts are in a namespace of their own, and go with its processes. Within it they are told on, as where systemd
    // is the first process.
    const mounts =
      'mount --make-rslave / && mount --make-rshared / && mount --bind "$1" /run && mount --bind "$2" "$3"'
    const script = `${mounts} && shift 3 && exec "$@"`
    const args = ['--mount', 'sh', '-c', script, 'sh', at('run'), at('data'), data, 'dockerd', ...options]
    this.#child = spawn('unshare', args, { env: this.#env, stdio: ['ignore', 'ignore', 'pipe'] })
    this.#child.stderr!.on('data', (text: Buffer) => {
      this.#told = (this.#told + text.toString()).slice(-4000)
    })
  }

  /** Whoever starts it stops it. */
  static async start(): Promise<NewerDockerd> {
    const dockerd = new NewerDockerd()
    try {
      await until(
        () => `dockerd answers; it says:\n${dockerd.#told}`,
        60_000,
        async () => {
          if (dockerd.#child.exitCode !== null) throw new Error(`dockerd has ended:\n${dockerd.#told}`)
          return (await dockerd.ask('version')).code === 0
        },
      )
    } catch (error) {
      await dockerd.stop()
      throw error
    }
    return dockerd
  }

  get socket(): string {
    return join(this.#dir, 'run/docker.sock')
  }

  /** Runs the client; returns what it printed. */
  async docker(...args: string[]): Promise<string> {
    const { code, out, talk } = await this.ask(...args)
    if (code !== 0) throw new Error(`docker ${args.join(' ')} ended with ${code}:\n${talk}`)
    return out.trim()
  }

  /** Runs the client, whatever it ends with. */
  async ask(...args: string[]): Promise<Said> {
    const settings = { env: this.#env, encoding: 'utf8' as const, maxBuffer: 2 ** 24 }
    try {
      const { stdout, stderr } = await run(join(packages!, 'usr/bin/docker'), args, settings)
      return { code: 0, out: stdout, talk: stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string }
      if (typeof code !== 'number') throw error
      return { code, out: stdout, talk: stderr }
    }
  }

  /** Leaves nothing behind. */
  async stop(): Promise<void> {
    const { out } = await this.ask('ps', '-aq', '--no-trunc')
    const ids = out.split('\n').filter(Boolean)
    if (ids.length > 0) await this.ask('rm', '-f', ...ids)
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const closed = new Promise(resolve => this.#child.once('exit', resolve))
      this.#child.kill()
      await closed
    }
    await until('the processes of the daemon have ended', 20_000, () => processesOf(this.#dir).length === 0)
    // The group of all containers stays where those of another daemon are in it.
    const groups = '/sys/fs/cgroup/docker'
    if (existsSync(groups) && !readdirSync(groups, { withFileTypes: true }).some(each => each.isDirectory()))
      rmdirSync(groups)
    rmSync(this.#dir, { recursive: true, force: true })
    if (this.#made !== undefined) rmdirSync(this.#made)
  }

  get #env(): NodeJS.ProcessEnv {
    const at = (path: string) => join(packages!, path)
    const libraries = join('usr/lib', process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu')
    return {
      PATH: `${at('usr/sbin')}:${at('usr/bin')}:${process.env.PATH}`,
      // The host's own first: they fit its loader.
      LD_LIBRARY_PATH: ['/', older!, packages!].map(root => join(root, libraries)).join(':'),
      DOCKER_HOST: `unix://${this.socket}`,
      HOME: this.#dir,
      TMPDIR: this.#dir,
    }
  }
}

/** Those that have the directory in their command line: the daemon, its containerd, and a shim for each container. */
function processesOf(dir: string): string[] {
  return readdirSync('/proc').filter(name => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(dir)
    } catch {
      return false // It has ended.
    }
  })
}
