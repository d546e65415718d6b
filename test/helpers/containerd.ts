// owns: host
// A containerd of a test's own: that of Debian's docker.io, installed or only unpacked, with its CRI. It has no network,
// keeps all that it makes in a directory of its own, and sees that directory as its /run.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { GrpcClient } from '../../src/foundation/lib/grpc-client.ts'
import { Reader } from '../../src/foundation/lib/protobuf.ts'
import { unpackedPackages } from '../../tools/debian-packages.ts'
import { dockerPackages, withoutDocker } from './dockerd.ts'
import { until } from './program.ts'
import { entries, message } from './protobuf-message.ts'

export const withoutContainerd = withoutDocker

const run = promisify(execFile)
const image = 'svc.test/shop:1.2'
const groups = '/sys/fs/cgroup'
/** Of the host network namespace, in the CRI (runtime.v1.NamespaceMode). */
const node = 2
const never = new AbortController().signal

/** The root with containerd's programs of another suite; undefined where they cannot be had, or do not run here. */
export function containerdOf(suite: string): string | undefined {
  const root = unpackedPackages('containerd', ['containerd'], { suite })
  const runs = root && spawnSync(join(root, 'usr/bin/containerd'), ['--version']).status === 0
  return runs ? root : undefined
}

/** A pod that the CRI runs, as a kubelet asks for it. */
export interface CriPod {
  readonly name: string
  readonly namespace: string
  readonly uid: string
}

export class Containerd {
  readonly socket: string
  /** Where its containers have their bundles. */
  readonly bundles: string
  readonly #dir = mkdtempSync(join(tmpdir(), 'svc-containerd-'))
  readonly #hadGroups: ReadonlySet<string>
  #child: ChildProcess | undefined

  private constructor(programs: string) {
    mkdirSync(join(this.#dir, 'bin'))
    for (const name of ['containerd', 'containerd-shim-runc-v2', 'ctr'])
      symlinkSync(join(programs, 'usr/bin', name), join(this.#dir, 'bin', name))
    this.socket = join(this.#dir, 'containerd.sock')
    this.bundles = join(this.#dir, 'state/io.containerd.runtime.v2.task')
    this.#hadGroups = new Set(ownGroups())
  }

  /**
   * With the image `svc.test/shop:1.2` in these namespaces, in which there is BusyBox. `programs`: the root that has
   * containerd's, in place of that of `docker.io`. Whoever starts it stops it.
   */
  static async start(namespaces: readonly string[], programs = dockerPackages!): Promise<Containerd> {
    const containerd = new Containerd(programs)
    try {
      mkdirSync(join(containerd.#dir, 'run'))
      containerd.#configure()
      await containerd.run()
      const archive = await containerd.#makeImage()
      for (const namespace of namespaces)
        await containerd.ctr(namespace, 'images', 'import', '--no-unpack', archive)
    } catch (error) {
      await containerd.stop()
      throw error
    }
    return containerd
  }

  /** Runs the client; returns what it printed. */
  async ctr(namespace: string, ...args: string[]): Promise<string> {
    const given = ['--address', this.socket, '--namespace', namespace, ...args]
    const { stdout } = await run(join(this.#dir, 'bin/ctr'), given, {
      env: this.#env,
      encoding: 'utf8',
    })
    return stdout.trim()
  }

  /** Starts a container that stays. */
  async container(namespace: string, id: string, labels: readonly string[] = []): Promise<void> {
    const given = labels.flatMap(label => ['--label', label])
    await this.ctr(
      namespace,
      'run',
      '-d',
      '--null-io',
      '--snapshotter',
      'native',
      ...given,
      image,
      id,
      'sleep',
      '1000',
    )
  }

  /** Ends a container and removes it. */
  async remove(namespace: string, id: string): Promise<void> {
    await this.ctr(namespace, 'tasks', 'delete', '--force', id).catch(() => undefined)
    await this.ctr(namespace, 'containers', 'delete', id)
  }

  /** Runs a pod with one container by the CRI; resolves with the ids of the sandbox and of the container. */
  async pod(pod: CriPod, container: string, labels: Readonly<Record<string, string>>) {
    const told = {
      'io.kubernetes.pod.name': pod.name,
      'io.kubernetes.pod.namespace': pod.namespace,
      'io.kubernetes.pod.uid': pod.uid,
    }
    const config = message(
      [1, message([1, pod.name], [2, pod.uid], [3, pod.namespace])],
      ...entries(6, told),
      [8, message([2, message([1, message([1, node])])])],
    )
    const sandbox = await this.#cri('RunPodSandbox', message([1, config]))
    const wanted = message(
      [1, message([1, container])],
      [2, message([1, image])],
      [3, 'sleep'],
      [4, '1000'],
      ...entries(9, { ...told, ...labels, 'io.kubernetes.container.name': container }),
    )
    const id = await this.#cri('CreateContainer', message([1, sandbox], [2, wanted], [3, config]))
    await this.#cri('StartContainer', message([1, id]))
    return { sandbox, id }
  }

  async endPod(sandbox: string): Promise<void> {
    await this.#cri('StopPodSandbox', message([1, sandbox]))
    await this.#cri('RemovePodSandbox', message([1, sandbox]))
  }

  /** The first field of the answer, as all of these have an id there or nothing. */
  async #cri(method: string, message: Uint8Array): Promise<string> {
    const client = new GrpcClient({
      host: 'localhost',
      port: 80,
      socketPath: this.socket,
      tls: undefined,
      connectTimeoutMs: 20_000,
      maxResponseBytes: 2 ** 20,
    })
    const path = `/runtime.v1.RuntimeService/${method}`
    const request = { path, message, encoding: 'identity', headers: {}, timeoutMs: 60_000 } as const
    try {
      const reader = new Reader(await client.call(request, never))
      return reader.next() ? reader.string(128) : ''
    } finally {
      client.close()
    }
  }

  /** Ends the daemon; containers stay. */
  async end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = new Promise(resolve => child.once('exit', resolve))
    child.kill(signal)
    await closed
  }

  /** Leaves nothing behind. */
  async stop(): Promise<void> {
    await this.end()
    const left = () => [...processesOf(this.#dir), ...ownGroups().flatMap(each => this.#pidsIn(each))]
    await until('the processes of the daemon have ended', 20_000, () => {
      const pids = left()
      for (const pid of pids) killNow(pid)
      return pids.length === 0
    })
    for (const group of ownGroups()) if (!this.#hadGroups.has(group)) removeGroup(group)
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async run(): Promise<void> {
    // Its mounts are in a namespace of their own, and go with its processes.
    const script = 'mount --make-rprivate / && mount --bind "$1" /run && shift && exec "$@"'
    const args = ['--mount', 'sh', '-c', script, 'sh', join(this.#dir, 'run')]
    const command = ['containerd', '--config', join(this.#dir, 'config.toml')]
    let told = ''
    const child = spawn('unshare', [...args, ...command], {
      env: this.#env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr!.on('data', (text: Buffer) => {
      told = (told + text.toString()).slice(-4000)
    })
    this.#child = child
    await until(
      () => `containerd answers; it says:\n${told}`,
      60_000,
      () => {
        if (child.exitCode !== null) throw new Error(`containerd has ended:\n${told}`)
        return this.ctr('default', 'version').then(
          () => true,
          () => false,
        )
      },
    )
  }

  #configure(): void {
    const at = (name: string) => JSON.stringify(join(this.#dir, name))
    const cri = 'plugins."io.containerd.grpc.v1.cri"'
    const lines = [
      'version = 2',
      `root = ${at('root')}`,
      `state = ${at('state')}`,
      `[grpc]\naddress = ${at('containerd.sock')}`,
      `[plugins."io.containerd.internal.v1.opt"]\npath = ${at('opt')}`,
      `[${cri}]\nsandbox_image = ${JSON.stringify(image)}\nrestrict_oom_score_adj = true`,
      `[${cri}.containerd]\nsnapshotter = "native"`,
    ]
    writeFileSync(join(this.#dir, 'config.toml'), lines.join('\n'))
  }

  get #env(): NodeJS.ProcessEnv {
    const at = (path: string) => join(dockerPackages!, path)
    return {
      PATH: `${join(this.#dir, 'bin')}:${at('usr/sbin')}:${at('usr/bin')}:${process.env.PATH}`,
      LD_LIBRARY_PATH: `/usr/lib/${architecture}-linux-gnu:${at(`usr/lib/${architecture}-linux-gnu`)}`,
      HOME: this.#dir,
      TMPDIR: this.#dir,
    }
  }

  /** An archive as `docker save` makes it, with one layer. */
  async #makeImage(): Promise<string> {
    const root = join(this.#dir, 'image')
    mkdirSync(join(root, 'layer/bin'), { recursive: true })
    cpSync(join(dockerPackages!, 'usr/bin/busybox'), join(root, 'layer/bin/busybox'))
    for (const name of ['sh', 'sleep']) symlinkSync('busybox', join(root, 'layer/bin', name))
    await run('tar', ['-cf', join(root, 'layer.tar'), '-C', join(root, 'layer'), '.'])
    const digest = createHash('sha256')
      .update(readFileSync(join(root, 'layer.tar')))
      .digest('hex')
    const config = {
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Cmd: ['sleep', '1000'], Env: ['PATH=/bin'], Labels: { 'org.example.image': 'yes' } },
      rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
    }
    writeFileSync(join(root, 'config.json'), JSON.stringify(config))
    const manifest = [{ Config: 'config.json', RepoTags: [image], Layers: ['layer.tar'] }]
    writeFileSync(join(root, 'manifest.json'), JSON.stringify(manifest))
    const archive = join(this.#dir, 'image.tar')
    await run('tar', ['-cf', archive, '-C', root, 'manifest.json', 'config.json', 'layer.tar'])
    return archive
  }

  /** Of containers of this daemon alone: those of the test's own ids. */
  #pidsIn(group: string): number[] {
    if (this.#hadGroups.has(group)) return []
    return readdirSync(group, { withFileTypes: true })
      .filter(each => each.isDirectory())
      .flatMap(each => {
        const path = join(group, each.name, 'cgroup.procs')
        return existsSync(path) ? readFileSync(path, 'latin1').split('\n').filter(Boolean).map(Number) : []
      })
  }
}

const architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64'

/** The control groups that containerd makes for its namespaces, one in each hierarchy. */
function ownGroups(): string[] {
  const hierarchies = [groups, ...readdirSync(groups).map(name => join(groups, name))]
  return hierarchies.flatMap(hierarchy =>
    ['default', 'shop', 'moby', 'k8s.io'].map(name => join(hierarchy, name)).filter(path => existsSync(path)),
  )
}

function removeGroup(group: string): void {
  for (const each of readdirSync(group, { withFileTypes: true }))
    if (each.isDirectory()) rmdirSync(join(group, each.name))
  rmdirSync(group)
}

/** Those that have the directory in their command line: the daemon, and a shim for each container. */
function processesOf(dir: string): number[] {
  return readdirSync('/proc')
    .filter(name => {
      try {
        return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(dir)
      } catch {
        return false // It has ended.
      }
    })
    .map(Number)
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
