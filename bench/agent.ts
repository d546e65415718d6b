// What the whole agent costs: throughput of nginx under wrk with and without it (pairs, interleaved), its CPU time for
// each request, its memory over a million requests, and how fast it starts. Runs dist/svc.cjs through bin/svc, as users
// do. Options: --pairs N, --seconds N, --requests N, --node PATH (another runtime for the same bundle).
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: {
    pairs: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '3' },
    requests: { type: 'string', default: '1000000' },
    node: { type: 'string' },
    sink: { type: 'string' },
  },
})
const pairs = Number(options.pairs)
const seconds = Number(options.seconds)
const requests = Number(options.requests)
const directory = mkdtempSync(join(tmpdir(), 'svc-bench-'))
const children = new Set<ChildProcess>()
const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK']).stdout.toString())

function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): ChildProcess {
  const child = spawn(command, args, { stdio: 'ignore', env })
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null) return
  const gone = new Promise(resolve => child.once('exit', resolve))
  child.kill(signal)
  await gone
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

function answers(url: string): Promise<number> {
  return new Promise(resolve => {
    get(url, response => {
      response.resume()
      resolve(response.statusCode ?? 0)
    }).on('error', () => resolve(0))
  })
}

async function until(check: () => Promise<boolean>, what: string): Promise<void> {
  for (const deadline = performance.now() + 20_000; performance.now() < deadline; await sleep(5))
    if (await check()) return
  throw new Error(`${what} did not happen within 20 s`)
}

const median = (numbers: readonly number[]): number => {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** User and system time of a process in seconds. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

function memory(pid: number): { rss: number; anonymous: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const of = (name: string) => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1]) / 1024
  return { rss: of('VmRSS'), anonymous: of('RssAnon') }
}

/** Requests per second of wrk against a URL. */
function wrk(url: string, forSeconds: number): number {
  const { stdout } = spawnSync('wrk', ['-t1', '-c50', `-d${forSeconds}s`, url])
  return Number(/Requests\/sec:\s*([\d.]+)/.exec(stdout.toString())?.[1])
}

interface Agent {
  readonly child: ChildProcess
  readonly pid: number
  readonly base: string
}

async function startAgent(endpoint: string): Promise<Agent> {
  const port = await freePort()
  const config = join(directory, `svc-${port}.yaml`)
  writeFileSync(
    config,
    `self_telemetry: {listen: "127.0.0.1:${port}"}\n${endpoint === '' ? '' : `otlp: {endpoint: "${endpoint}", insecure: true}\n`}`,
  )
  const flags = readFileSync('bin/svc', 'latin1').match(/--[a-z-]+(?:=\d+)?(?= )/g) ?? []
  const child =
    options.node === undefined
      ? start('bin/svc', ['run', '--config', config])
      : start(options.node, [...flags, 'dist/svc.cjs', 'run', '--config', config])
  const base = `http://127.0.0.1:${port}`
  await until(async () => (await answers(`${base}/ready`)) === 200, 'the start of the agent')
  return { child, pid: child.pid!, base }
}

/** Takes every export and keeps nothing: the cost of a receiver is not the agent's. Runs in a process of its own. */
function sink(port: number): void {
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
  server.listen(port, '127.0.0.1')
}

async function startSink(): Promise<string> {
  const port = await freePort()
  start(process.execPath, [process.argv[1]!, '--sink', String(port)])
  await sleep(500)
  return `127.0.0.1:${port}`
}

async function throughput(url: string, endpoint: string): Promise<void> {
  const without: number[] = []
  const withAgent: number[] = []
  const cpu: number[] = []
  for (let i = 0; i < pairs; i++) {
    without.push(wrk(url, seconds))
    const agent = await startAgent(endpoint)
    const before = cpuSeconds(agent.pid)
    const rate = wrk(url, seconds)
    await sleep(300)
    cpu.push(((cpuSeconds(agent.pid) - before) * 1e6) / (rate * seconds))
    withAgent.push(rate)
    await end(agent.child)
  }
  const ratios = withAgent.map((rate, i) => rate / without[i]!)
  console.log(
    `throughput ${endpoint === '' ? 'without' : 'with'} export: ${Math.round(median(without))} req/s alone, ` +
      `${Math.round(median(withAgent))} observed: ${(100 * median(ratios)).toFixed(1)} % ` +
      `(pairs ${ratios.map(ratio => (100 * ratio).toFixed(0)).join(' ')}); ` +
      `agent CPU ${median(cpu).toFixed(2)} µs a request`,
  )
}

async function memoryOverTime(url: string, endpoint: string): Promise<void> {
  const agent = await startAgent(endpoint)
  const steps: string[] = []
  let sent = 0
  for (let next = 0; sent < requests; ) {
    sent += wrk(url, 5) * 5
    if (sent < next) continue
    const { rss, anonymous } = memory(agent.pid)
    steps.push(`${(sent / 1e6).toFixed(2)} M: ${rss.toFixed(0)} (${anonymous.toFixed(0)})`)
    next = sent + requests / 5
  }
  await sleep(3000)
  const { rss, anonymous } = memory(agent.pid)
  console.log(
    `memory, MB resident (anonymous) after requests: ${steps.join(', ')}; settled ${rss.toFixed(0)} (${anonymous.toFixed(0)})`,
  )
  await end(agent.child)
}

async function startTimes(url: string): Promise<void> {
  const toHealth: number[] = []
  const toSpan: number[] = []
  for (let i = 0; i < 5; i++) {
    const port = await freePort()
    const config = join(directory, 'start.yaml')
    writeFileSync(config, `self_telemetry: {listen: "127.0.0.1:${port}"}\n`)
    const began = performance.now()
    const child = start('bin/svc', ['run', '--config', config])
    await until(async () => (await answers(`http://127.0.0.1:${port}/healthz`)) === 200, '/healthz')
    toHealth.push(performance.now() - began)
    await until(async () => {
      await answers(url)
      const text = await textOf(`http://127.0.0.1:${port}/metrics`)
      return /^svc_spans_collected_total\{.*\} [1-9]/m.test(text)
    }, 'the first span')
    toSpan.push(performance.now() - began)
    await end(child)
  }
  console.log(
    `start: ${median(toHealth).toFixed(0)} ms to /healthz, ${median(toSpan).toFixed(0)} ms to the first span`,
  )
}

function textOf(url: string): Promise<string> {
  return new Promise(resolve => {
    get(url, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', part => {
        text += part
      })
      response.on('end', () => resolve(text))
    }).on('error', () => resolve(''))
  })
}

async function idle(): Promise<void> {
  const agent = await startAgent('')
  await sleep(2000)
  const before = cpuSeconds(agent.pid)
  await sleep(8000)
  const { rss, anonymous } = memory(agent.pid)
  console.log(
    `idle: ${(((cpuSeconds(agent.pid) - before) / 8) * 100).toFixed(2)} % of a core, ${rss.toFixed(0)} MB resident (${anonymous.toFixed(0)} anonymous)`,
  )
  await end(agent.child)
}

async function main(): Promise<void> {
  const port = await freePort()
  for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']) mkdirSync(join(directory, name))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${directory}/${name};`)
    .join(' ')
  writeFileSync(
    join(directory, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${directory}/pid; error_log ${directory}/error.log;
     events { worker_connections 1024; }
     http { access_log off; keepalive_requests 100000000; ${temporary}
       server { listen 127.0.0.1:${port}; location / { return 200 "hello, world"; } } }`,
  )
  const nginx = start('nginx', ['-c', join(directory, 'nginx.conf')], {
    ...process.env,
    PATH: `${process.env.PATH}:/usr/sbin`,
  })
  const url = `http://127.0.0.1:${port}/api/items`
  await until(async () => (await answers(url)) === 200, 'the start of nginx')
  const endpoint = await startSink()
  try {
    await startTimes(url)
    await idle()
    await throughput(url, '')
    await throughput(url, endpoint)
    await memoryOverTime(url, endpoint)
  } finally {
    await end(nginx)
    for (const child of children) child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
}

if (options.sink !== undefined) {
  sink(Number(options.sink))
} else {
  main().catch(error => {
    console.error(error)
    process.exitCode = 1
  })
}
