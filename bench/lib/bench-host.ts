// What benchmarks of the whole agent share: programs, a receiver that keeps nothing, and what the kernel says of them.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, until } from '../../test/helpers/program.ts'
import { runtimeFlags } from '../../test/helpers/runtime-flags.ts'

const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK']).stdout.toString())

export interface Agent {
  readonly child: ChildProcess
  readonly pid: number
  readonly base: string
}

/** A temporary folder and the programs that were started; `close` ends and removes both. */
export class BenchHost {
  readonly directory = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  readonly #children = new Set<ChildProcess>()

  start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): ChildProcess {
    const child = spawn(command, args, { stdio: 'ignore', env })
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    return child
  }

  async end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise(resolve => child.once('exit', resolve))
    child.kill(signal)
    await gone
  }

  /**
   * Starts dist/svc.cjs through bin/svc, as users do, or with another runtime and the same flags. `config` is YAML
   * below the listen address. Resolves when it is ready.
   */
  async startAgent(
    endpoint: string,
    {
      node,
      config = '',
      wrapper = [],
    }: { node?: string | undefined; config?: string; wrapper?: readonly string[] } = {},
  ): Promise<Agent> {
    const port = await freePort()
    const file = join(this.directory, `svc-${port}.yaml`)
    const own = `self_telemetry:\n  listen: "127.0.0.1:${port}"\n  admin_socket: ""\n${config}`
    const otlp = endpoint === '' ? '' : `otlp: {endpoint: "${endpoint}", insecure: true}\n`
    writeFileSync(file, own + otlp)
    const [command, ...args] = [
      ...wrapper,
      ...(node === undefined ? ['bin/svc'] : [node, ...runtimeFlags, 'dist/svc.cjs']),
      ...['run', '--config', file],
    ]
    const child = this.start(command!, args)
    const base = `http://127.0.0.1:${port}`
    await until('the agent has started', 20_000, async () => (await statusOf(`${base}/ready`)) === 200)
    return { child, pid: child.pid!, base }
  }

  /** Takes every export and keeps nothing: the cost of a receiver is not the agent's. In a process of its own. */
  async startSink(): Promise<string> {
    const port = await freePort()
    this.start(process.execPath, [import.meta.filename, String(port)])
    await sleep(500)
    return `127.0.0.1:${port}`
  }

  /** nginx with one worker that answers 12 bytes. Resolves with a URL when it answers. */
  async startNginx(): Promise<string> {
    const { directory } = this
    const port = await freePort()
    const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    for (const name of kinds) mkdirSync(join(directory, name))
    const temporary = kinds.map(name => `${name}_temp_path ${directory}/${name};`).join(' ')
    writeFileSync(
      join(directory, 'nginx.conf'),
      `daemon off; worker_processes 1; pid ${directory}/pid; error_log ${directory}/error.log;
       events { worker_connections 1024; }
       http { access_log off; keepalive_requests 100000000; ${temporary}
         server { listen 127.0.0.1:${port}; location / { return 200 "hello, world"; } } }`,
    )
    const PATH = `${process.env.PATH}:/usr/sbin`
    this.start('nginx', ['-c', join(directory, 'nginx.conf')], { ...process.env, PATH })
    const url = `http://127.0.0.1:${port}/api/items`
    await until('nginx has started', 20_000, async () => (await statusOf(url)) === 200)
    return url
  }

  async close(): Promise<void> {
    // nginx ends its workers when it is asked to.
    for (const child of [...this.#children]) await this.end(child)
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** Status and body of a GET; status 0 where nobody answers. */
export function fetchText(url: string): Promise<{ status: number; text: string }> {
  return new Promise(resolve => {
    get(url, response => {
      let text = ''
      response.setEncoding('utf8').on('data', part => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    }).on('error', () => resolve({ status: 0, text: '' }))
  })
}

export async function statusOf(url: string): Promise<number> {
  return (await fetchText(url)).status
}

/** User and system time of a process in seconds. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** Resident memory of a process in MiB. */
export function memory(pid: number): { rss: number; anonymous: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const of = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1]) / 1024
  return { rss: of('VmRSS'), anonymous: of('RssAnon') }
}

if (process.argv[1] === import.meta.filename) {
  const server = createHttp2()
  server.on('stream', stream => {
    stream.on('error', () => {})
    stream.resume()
    stream.on('end', () => {
      if (stream.destroyed) return
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(Buffer.alloc(5))
    })
  })
  server.listen(Number(process.argv[2]), '127.0.0.1')
}
