import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, until, witnesses } from './program.ts'
import { root, svcProgram } from './program-under-test.ts'

/** A configuration, or a part of one. */
export interface Tree {
  readonly [key: string]: string | number | boolean | readonly (string | number)[] | Tree
}

/** Of `agent.ebpf`, for tests of many requests as fast as they can be: losses.test.ts has a ring that is full. */
export const largeRing = { ringbuf_size: 64 * 2 ** 20 }

export interface AgentOptions {
  /** `host:port` of the receiver; left out: nothing is exported. */
  readonly endpoint?: string
  /** Ports of the servers that it looks at, beside its own; left out: all. A test does not depend on a silent host. */
  readonly ports?: readonly number[]
  /** Laid over the configuration that all tests share. */
  readonly config?: Tree
  /** Variables laid over those of the test. */
  readonly env?: Readonly<Record<string, string>>
  /** Where its management API listens, '' for everywhere; left out: 127.0.0.1. */
  readonly host?: string
  /** What the agent's command line is passed to, for example `['unshare', '-m']`. */
  readonly wrapper?: readonly string[]
  /** What the first answer of /ready must be; left out: 200. */
  readonly readyStatus?: number
  /** How long that may take; left out: 60 s. */
  readonly readyMs?: number
  /** As users run it, by bin/svc with its flags, whatever else a test runs. */
  readonly shipped?: boolean
  /** With svc's own defaults: nothing but `config` and where it listens and keeps its files differs from them. */
  readonly defaults?: boolean
}

export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

/** The books of one signal, from /debug/pipeline/stats: items. */
export interface Balance {
  readonly received: number
  readonly recovered: number
  readonly exported: number
  readonly rejected: number
  readonly dropped: Readonly<Record<string, number>>
  readonly queued: number
}

/** Why an agent ended. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** The agent as a process of its own. */
export class AgentProcess {
  readonly pid: number
  readonly port: number
  readonly log: LogLine[] = []
  readonly exited: Promise<Exit>
  /** Its configuration. */
  readonly file: string
  /** Where its admin socket is. */
  readonly socket: string
  readonly #child: ChildProcess
  readonly #directory: string
  readonly #config: Tree
  /** What it counts that is missing somewhere, but for zeros. */
  readonly #losses = async (): Promise<string> => {
    const { exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null)
      return `agent ${this.pid} ended with ${signalCode ?? exitCode}:\n${this.logText().slice(-4000)}`
    const { text } = await this.get('/metrics')
    const counts = text.match(/^svc_\S*(?:dropped|lost|rejected|failed|failures|errors)\S* (?!0$).*$/gm) ?? []
    return [`agent ${this.pid}:`, ...counts, JSON.stringify(await this.counters())].join('\n')
  }

  private constructor(child: ChildProcess, port: number, directory: string, config: Tree) {
    this.#child = child
    this.pid = child.pid!
    this.port = port
    this.file = join(directory, 'config.yaml')
    this.socket = join(directory, 'svc.sock')
    this.#directory = directory
    this.#config = config
    let rest = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop()!
      for (const line of lines) this.log.push(parseLog(line))
    })
    witnesses.add(this.#losses)
    this.exited = new Promise(resolve =>
      child.once('close', (code, signal) => {
        rmSync(directory, { recursive: true, force: true })
        if (code === 0) witnesses.delete(this.#losses)
        resolve({ code, signal })
      }),
    )
  }

  /** Starts one and does not wait for it. */
  static async spawn({
    endpoint = '',
    ports,
    config = {},
    env = {},
    wrapper = [],
    shipped = false,
    host = '127.0.0.1',
    defaults = false,
  }: AgentOptions = {}): Promise<AgentProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-e2e-'))
    chmodSync(directory, 0o755) // an agent without rights is to read its configuration
    const port = await freePort()
    const shared: Tree = {
      // What a busy host answers late is not to come twice.
      otlp: { endpoint, insecure: true, timeout: '60s' },
      // Tests want all that there is, whatever it costs; the limit has its own.
      limits: { cpu: 64 },
      self_telemetry: { listen: `${host}:${port}`, admin_socket: join(directory, 'svc.sock') },
      agent: {
        // Its readings would be among those that a test counts.
        ...(isTree(config.agent) && 'nodeexporter' in config.agent
          ? {}
          : { nodeexporter: { enabled: false } }),
        ...(isTree(config.agent) && 'profiling' in config.agent ? {} : { profiling: { enabled: false } }),
        ...(isTree(config.agent) && 'logs' in config.agent ? {} : { logs: { enabled: false } }),
        ...(isTree(config.agent) && 'discovery' in config.agent ? {} : { discovery: { enabled: false } }),
        // What it counts beside requests would be among what a test counts, too.
        ebpf: {
          process: { enabled: false },
          network: {
            tcp_metrics: false,
            flows: false,
            metrics_interval: '500ms',
            sampling: { max_spans_per_second: 0 },
            include_ports: ports === undefined ? [] : [...ports, port],
          },
        },
      },
      pipeline: {
        export: {
          batch: { timeout: '100ms' },
          queue: { enabled: false, directory: join(directory, 'state/queue') },
        },
      },
      backoff: { initial: '100ms', max: '500ms' },
    }
    const file = join(directory, 'config.yaml')
    const written = merge(defaults ? await ownPlaces(endpoint, port, directory) : shared, config)
    checkOwner(written)
    writeFileSync(file, JSON.stringify(written)) // JSON is YAML
    const program = shipped ? [join(root, 'bin/svc')] : [process.execPath, svcProgram]
    const [command, ...args] = [...wrapper, ...program, 'run', '--config', file]
    const child = spawn(command!, args, {
      cwd: directory,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'pipe'],
    })
    return new AgentProcess(child, port, directory, written)
  }

  /** Starts one and waits until it answers. */
  static async start(options: AgentOptions = {}): Promise<AgentProcess> {
    const agent = await AgentProcess.spawn(options)
    let last = 0
    try {
      const { readyStatus = 200, readyMs = 60_000 } = options
      await until(
        () => `the agent answers ${readyStatus} (${last}):\n${agent.logText()}`,
        readyMs,
        async () => {
          last = (await agent.get('/ready').catch(() => ({ status: 0 }))).status
          return last === readyStatus
        },
      )
    } catch (error) {
      await agent.kill()
      throw error
    }
    return agent
  }

  async get(path: string): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const call = request({ host: '127.0.0.1', port: this.port, path, agent: false }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', part => {
          text += part
        })
        response.on('end', () => resolve({ status: response.statusCode!, text }))
      })
      call.on('error', reject).end()
    })
  }

  async document<T>(path: string): Promise<T> {
    return JSON.parse((await this.get(path)).text) as T
  }

  /** Replaces its configuration by that of its start with `config` laid over it, as editors do. It is not told. */
  configure(config: Tree): void {
    const next = `${this.file}.next`
    const written = merge(this.#config, config)
    checkOwner(written)
    writeFileSync(next, JSON.stringify(written))
    renameSync(next, this.file)
  }

  /** How many descriptors it has open. */
  descriptors(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length
  }

  /** What the kernel side counted. */
  async counters(): Promise<Record<string, number>> {
    return (await this.document<{ counters: Record<string, number> }>('/status/ebpf')).counters
  }

  /** The books by signal. Takes `self_telemetry.debug`. */
  async balances(): Promise<Readonly<Record<string, Balance>>> {
    return (await this.document<{ signals: Record<string, Balance> }>('/debug/pipeline/stats')).signals
  }

  /** The agent's own metrics: values by name and labels as they are written. */
  async metrics(): Promise<Metrics> {
    const { text } = await this.get('/metrics')
    const series = new Map<string, number>()
    for (const line of text.split('\n')) {
      const space = line.lastIndexOf(' ')
      if (!line.startsWith('#') && space > 0) series.set(line.slice(0, space), Number(line.slice(space + 1)))
    }
    return new Metrics(series)
  }

  logText(): string {
    return this.log.map(line => JSON.stringify(line)).join('\n')
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Asks it to end and waits for that. */
  async stop(): Promise<Exit> {
    witnesses.delete(this.#losses)
    this.signal('SIGTERM')
    return this.exited
  }

  async kill(): Promise<Exit> {
    witnesses.delete(this.#losses)
    this.signal('SIGKILL')
    const exit = await this.exited
    rmSync(this.#directory, { recursive: true, force: true })
    return exit
  }
}

export class Metrics {
  readonly #series: ReadonlyMap<string, number>

  constructor(series: ReadonlyMap<string, number>) {
    this.#series = series
  }

  /** The sum of the series of a name whose labels hold `labels` as written, for example `reason="ring_full"`. */
  sum(name: string, labels = ''): number {
    let sum = 0
    for (const [series, value] of this.#series)
      if ((series === name || series.startsWith(`${name}{`)) && series.includes(labels)) sum += value
    return sum
  }
}

/** What two agents of one host cannot share. */
async function ownPlaces(endpoint: string, port: number, directory: string): Promise<Tree> {
  return {
    otlp: { endpoint, insecure: true },
    self_telemetry: { listen: `127.0.0.1:${port}`, admin_socket: join(directory, 'svc.sock') },
    agent: {
      nodeexporter: { listen_address: `127.0.0.1:${await freePort()}` },
      logs: { position_file: join(directory, 'log-positions') },
    },
    pipeline: { export: { queue: { directory: join(directory, 'queue') } } },
  }
}

/** Throws where this test file does not say that it owns what an agent of this configuration looks at. */
function checkOwner(config: Tree): void {
  const at = (...keys: readonly string[]) =>
    keys.reduce<Tree[string] | undefined>((tree, key) => (isTree(tree) ? tree[key] : undefined), config)
  const ebpf = (...keys: readonly string[]) => at('agent', 'ebpf', ...keys)
  if (at('mode') === 'collector' || ebpf() === false || ebpf('enabled') === false) return
  const included = ebpf('network', 'include_ports')
  const whole =
    ((included === undefined || (Array.isArray(included) && included.length === 0)) &&
      ebpf('network', 'enabled') !== false) ||
    // Profiles are of all that runs, too; a test that counts in them says so itself.
    [ebpf('process'), ebpf('syscalls')].some(part => isTree(part) && part.enabled !== false) ||
    ['tcp_metrics', 'flows'].some(key => ebpf('network', key) === true)
  const allowed = process.env.TEST_OWNS?.split(',')
  if (allowed === undefined || allowed.includes(whole ? 'host' : 'ports')) return
  const what = whole ? 'the whole host' : 'ports of its own'
  throw new Error(
    `this test file starts an agent that looks at ${what}: add "// owns: ${whole ? 'host' : 'ports'}"`,
  )
}

function parseLog(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine
  } catch {
    return { level: 'raw', msg: line } // what the runtime itself says is no JSON
  }
}

function merge(under: Tree, over: Tree): Tree {
  const merged: Record<string, Tree[string]> = { ...under }
  for (const [key, value] of Object.entries(over)) {
    const old = merged[key]
    merged[key] = isTree(old) && isTree(value) ? merge(old, value) : value
  }
  return merged
}

function isTree(value: Tree[string] | undefined): value is Tree {
  return typeof value === 'object' && !Array.isArray(value)
}
