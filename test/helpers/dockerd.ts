// owns: host
// A Docker daemon of a test's own: Debian's, installed or only unpacked. It has no network, keeps all that it makes in
// a directory of its own, and sees that directory as its /run.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { unpackedPackages } from '../../tools/debian-packages.ts'
import { until } from './program.ts'

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0
/** Debian's own, where they are installed; that of Docker's packages has its daemon elsewhere. */
const isInstalled = ['/usr/sbin/dockerd', '/usr/sbin/runc', '/usr/bin/busybox'].every(path =>
  existsSync(path),
)
/** The root with the programs, those of containerd among them. */
export const dockerPackages = isInstalled
  ? '/'
  : isRoot
    ? unpackedPackages('docker', ['docker.io', 'busybox-static'])
    : undefined

export const withoutDocker: string | false = !isRoot
  ? 'a Docker daemon needs root'
  : dockerPackages === undefined
    ? 'a Docker daemon needs the packages docker.io and busybox-static of Debian 12, which apt-get cannot download here'
    : false

/** What containers run: one program that is all of these. */
const commands = [
  'sh',
  'sleep',
  'cat',
  'echo',
  'true',
  'false',
  'test',
  'touch',
  'rm',
  'httpd',
  'wget',
  'nc',
  'seq',
]
const groups = '/sys/fs/cgroup'

export class Dockerd {
  /** `data-root`. */
  readonly root: string
  readonly socket: string
  readonly #dir: string
  /** Those of another daemon on this host stay. */
  readonly #hadGroups: ReadonlySet<string>
  #child: ChildProcess | undefined
  readonly #options: readonly string[]

  private constructor(options: readonly string[]) {
    this.#options = options
    this.#dir = mkdtempSync(join(tmpdir(), 'svc-dockerd-'))
    this.root = join(this.#dir, 'data')
    this.socket = join(this.#dir, 'docker.sock')
    this.#hadGroups = new Set(dockerGroups())
  }

  /** With the image `shop:1.2`, in which there is BusyBox. `options`: more of the daemon's. Whoever starts it stops it. */
  static async start(options: readonly string[] = []): Promise<Dockerd> {
    const dockerd = new Dockerd(options)
    try {
      for (const name of ['data', 'exec', 'run', 'image/bin'])
        mkdirSync(join(dockerd.#dir, name), { recursive: true })
      await dockerd.run()
      await dockerd.#makeImage()
    } catch (error) {
      await dockerd.stop()
      throw error
    }
    return dockerd
  }

  /** Runs the client; returns what it printed. */
  async docker(...args: string[]): Promise<string> {
    const { stdout } = await run(join(dockerPackages!, 'usr/bin/docker'), args, {
      env: this.#env,
      encoding: 'utf8',
    })
    return stdout.trim()
  }

  /** Starts a container that stays; returns its number. */
  async container(
    name: string,
    args: readonly string[] = [],
    command: readonly string[] = ['sleep', '1000'],
  ) {
    // BusyBox's sleep is deaf to SIGTERM as the first process, and every stop would take 10 s.
    const given = ['--net', 'none', '--stop-signal', 'KILL', '--name', name]
    return this.docker('run', '-d', ...given, ...args, 'shop:1.2', ...command)
  }

  /** Ends the daemon as its host's init would, or at once, and starts it again. */
  async restart(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.end(signal)
    await this.run()
  }

  /** Ends the daemon. Containers end with it, unless it is killed. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = new Promise(resolve => child.once('exit', resolve))
    child.kill(signal)
    await closed
  }

  /** Leaves nothing behind. */
  async stop(): Promise<void> {
    if (this.#child !== undefined)
      await this.docker('ps', '-aq').then(
        ids => (ids === '' ? '' : this.docker('rm', '-f', ...ids.split('\n'))),
        () => '',
      )
    await this.end()
    const left = () => [...processesOf(this.#dir), ...this.#groups().flatMap(pidsIn)]
    for (const pid of left()) killNow(pid)
    await until('the processes of the daemon have ended', 20_000, () => left().length === 0)
    for (const group of this.#groups()) rmdirSync(group)
    for (const group of dockerGroups()) if (!this.#hadGroups.has(group)) rmdirSync(group)
    rmSync(this.#dir, { recursive: true, force: true })
  }

  /** The control groups of its containers that are there. */
  #groups(): string[] {
    const containers = join(this.root, 'containers')
    const ids = existsSync(containers) ? readdirSync(containers) : []
    return dockerGroups()
      .flatMap(group => ids.map(id => join(group, id)))
      .filter(group => existsSync(group))
  }

  async run(): Promise<void> {
    // It would write into /etc/docker, and takes this only from a file.
    const settings = { 'deprecated-key-path': join(this.#dir, 'key.json') }
    writeFileSync(join(this.#dir, 'daemon.json'), JSON.stringify(settings))
    // A containerd that was killed with its daemon counts as running for as long as nobody has reaped it.
    rmSync(join(this.#dir, 'exec/containerd/containerd.pid'), { force: true })
    const script = 'mount --bind "$1" /run && shift && exec "$@"'
    const options = [
      ...[
        '--data-root',
        this.root,
        '--exec-root',
        join(this.#dir, 'exec'),
        '--pidfile',
        join(this.#dir, 'pid'),
      ],
      ...[
        '-H',
        `unix://${this.socket}`,
        '--storage-driver=vfs',
        '--exec-opt',
        'native.cgroupdriver=cgroupfs',
      ],
      ...['--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false'],
      ...['--config-file', join(this.#dir, 'daemon.json')],
      ...this.#options,
    ]
    // Its mounts are in a namespace of their own, and go with its processes.
    const args = ['--mount', 'sh', '-c', script, 'sh', join(this.#dir, 'run'), 'dockerd', ...options]
    let told = ''
    const child = spawn('unshare', args, { env: this.#env, stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr!.on('data', (text: Buffer) => {
      told = (told + text.toString()).slice(-4000)
    })
    this.#child = child
    await until(
      () => `dockerd answers; it says:\n${told}`,
      60_000,
      () => {
        if (child.exitCode !== null) throw new Error(`dockerd has ended:\n${told}`)
        return this.docker('version').then(
          () => true,
          () => false,
        )
      },
    )
  }

  get #env(): NodeJS.ProcessEnv {
    const at = (path: string) => join(dockerPackages!, path)
    return {
      PATH: `${at('usr/sbin')}:${at('usr/bin')}:${process.env.PATH}`,
      // The host's own first: they fit its loader.
      LD_LIBRARY_PATH: `/usr/lib/${architecture}-linux-gnu:${at(`usr/lib/${architecture}-linux-gnu`)}`,
      DOCKER_HOST: `unix://${this.socket}`,
      HOME: this.#dir,
      TMPDIR: this.#dir,
    }
  }

  async #makeImage(): Promise<void> {
    const image = join(this.#dir, 'image')
    // A page to be asked for, and what it is asked by.
    writeFileSync(join(image, 'index.html'), 'a cup\n')
    const script = `cp ${join(dockerPackages!, 'usr/bin/busybox')} bin && for name in ${commands.join(' ')}; do ln -s busybox bin/$name; done`
    await run(
      'sh',
      ['-c', `${script}; tar -c . | ${join(dockerPackages!, 'usr/bin/docker')} import - shop:1.2`],
      {
        cwd: image,
        env: this.#env,
      },
    )
  }
}

const architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64'

/** The control groups that daemons make for the groups of their containers, one in each hierarchy. */
function dockerGroups(): string[] {
  const hierarchies = [groups, ...readdirSync(groups).map(name => join(groups, name))]
  return hierarchies
    .map(hierarchy => join(hierarchy, 'docker'))
    .filter(group => statSync(group, { throwIfNoEntry: false })?.isDirectory())
}

/** Those that have the directory in their command line: the daemon, its containerd, and a shim for each container. */
function processesOf(dir: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && commandLine(name).includes(dir))
    .map(Number)
}

function pidsIn(group: string): number[] {
  return readFileSync(join(group, 'cgroup.procs'), 'latin1').split('\n').filter(Boolean).map(Number)
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return '' // It has ended.
  }
}
