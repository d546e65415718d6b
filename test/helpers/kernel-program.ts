// Runs in a machine of its own, as one file: starts the installed agent, lets programs do a known number of things, and
// prints what the agent told of them. The first argument is a `KernelRun` as JSON.

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { appendFileSync, chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { release } from 'node:os'
import { createInterface } from 'node:readline'
import { guestNative, startLoopback } from './guest-loopback.ts'
import {
  counts,
  type Doctored,
  type KernelReport,
  type KernelRest,
  type KernelRun,
  type Profiled,
  ports,
  type Seen,
  wholeStacks,
} from './kernel-report.ts'
import { startHttpReceiver } from './otlp-http-receiver.ts'
import type { Line } from './otlp-items.ts'

const { backend, what, wrapper, user } = JSON.parse(process.argv[2]!) as KernelRun
const logFile = '/var/log/kernel-test.log'
const configuration = '/run/kernel-test.yaml'
const [svc, node] = ['/opt/svc/bin/svc', '/opt/svc/runtime/bin/node']
const serverKind = 2
/** For whoever finds out what took so long: the machine's console. */
const progress = (what: string) =>
  appendFileSync('/dev/console', `${Math.round(performance.now())} ms: ${what}\n`)
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** Waits for a state, not for ever: what is missing then is a finding. */
async function settled(limitMs: number, test: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const end = performance.now() + limitMs; performance.now() < end; await pause(250))
    if (await test()) return true
  return false
}

/** One of kernel-programs.ts. */
class Watched {
  readonly child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(role: string) {
    const command = [node, '/opt/kernel/programs.cjs', role]
    this.child = spawn(command[0]!, command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface(this.child.stdout!)[Symbol.asyncIterator]()
  }

  async said(): Promise<void> {
    const { value } = await this.#lines.next()
    if (value !== 'ready' && value !== 'done') throw new Error(`${value}`)
  }

  ask(line: string): Promise<void> {
    this.child.stdin!.write(`${line}\n`)
    return this.said()
  }
}

interface Page {
  readonly status: number
  readonly text: string
}

function page(port: number, path: string): Promise<Page> {
  return new Promise<Page>(resolve => {
    get({ host: '127.0.0.1', port, path, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', part => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode!, text }))
    }).on('error', error => resolve({ status: 0, text: String(error) }))
  })
}

/** Of /status/ebpf. */
interface TlsFile {
  readonly path: string
  readonly attached: boolean
  readonly reason: string
}

const own = 19090
const json = async (path: string) => JSON.parse((await page(own, path)).text)

function configure(): void {
  const tree = {
    otlp: { endpoint: 'http://127.0.0.1:4318', protocol: 'http/protobuf' },
    self_telemetry: { listen: `127.0.0.1:${own}` },
    agent: {
      ebpf: {
        backend,
        network: { metrics_interval: '1s', include_ports: Object.values(ports) },
        syscalls: { enabled: true, include: ['statfs'] },
      },
      nodeexporter: { listen_address: '127.0.0.1:9100' },
      logs: { paths: [logFile], start_at: 'beginning' },
    },
    pipeline: { export: { batch: { timeout: '100ms' } } },
  }
  writeFileSync(configuration, JSON.stringify(tree))
}

type Values = Readonly<Record<string, unknown>>
interface Point {
  readonly attributes: Values
  readonly value?: number
  readonly count?: number
  readonly startNs: string
}

/** The last point of each series of a metric whose process and attributes are wanted, added up. */
function total(
  lines: readonly Line[],
  name: string,
  wanted: (attributes: Values, resource: Values) => boolean = () => true,
): number {
  const last = new Map<string, number>()
  for (const line of lines) {
    if (line.signal !== 'metrics' || line.name !== name) continue
    const resource = line.resource as Values
    for (const { attributes, count, value, startNs } of line.points as Point[])
      if (wanted(attributes, resource))
        last.set(JSON.stringify([resource['service.instance.id'], attributes, startNs]), count ?? value ?? 0)
  }
  return [...last.values()].reduce((sum, each) => sum + each, 0)
}

interface Span {
  readonly kind: number
  readonly traceId: string
  readonly attributes: Values
}

/**
 * Spans or records, once each: what was not acknowledged in time is sent again, and an emulated receiver takes its time.
 */
function items(lines: readonly Line[], signal: 'traces' | 'logs'): readonly (Span & Line)[] {
  const found = lines.filter(line => line.signal === signal)
  return [...new Map(found.map(line => [JSON.stringify(line), line])).values()] as unknown as (Span & Line)[]
}

/** `servers`: the processes that serve at these ports, as their counts have no port. */
function seenAt(
  lines: readonly Line[],
  metric: string,
  servers: readonly Watched[],
  ...at: readonly number[]
): Seen {
  const isThere = (attributes: Values) => at.includes(Number(attributes['server.port']))
  const spans = items(lines, 'traces').filter(({ attributes }) => isThere(attributes))
  const ofServers = spans.filter(({ kind }) => kind === serverKind).length
  return {
    clientSpans: spans.length - ofServers,
    serverSpans: ofServers,
    clientCount: total(lines, metric.replace('SIDE', 'client'), isThere),
    serverCount: total(
      lines,
      metric.replace('SIDE', 'server'),
      ({ 'url.scheme': scheme }, { 'process.pid': pid }) =>
        servers.some(({ child }) => child.pid === pid) && (scheme === 'https') === at.includes(ports.tls),
    ),
  }
}

/** Traces that have the client, both servers, and what one asked of the other. */
function chainsIn(lines: readonly Line[]): number {
  const traces = new Map<string, number>()
  for (const { traceId, attributes } of items(lines, 'traces'))
    if ([ports.front, ports.back].includes(attributes['server.port'] as 8080))
      traces.set(traceId, (traces.get(traceId) ?? 0) + 1)
  return [...traces.values()].filter(spans => spans === 4).length
}

/** Folded stacks of a program, as soon as they are whole; what came last where they never are. */
async function profileOf(what: Profiled, program: string, ...args: string[]): Promise<string> {
  const child = spawn(program, args, { stdio: 'ignore' })
  const kind = what === 'script' ? 'cpu' : what
  let last: Page = { status: 0, text: '' }
  try {
    await settled(180_000, async () => {
      last = await page(own, `/profiles?pid=${child.pid}&kind=${kind}&seconds=2&format=folded`)
      return last.status === 503 || wholeStacks[what].test(last.text)
    })
    return wholeStacks[what].exec(last.text)?.[0] ?? last.text.slice(0, 5_000)
  } finally {
    child.kill('SIGKILL')
  }
}

function failing(text: string): Record<string, string> {
  const failed: Record<string, string> = {}
  for (const [, name] of text.matchAll(/^node_scrape_collector_success\{collector="(\w+)"\} 0$/gm)) {
    const reason = new RegExp(`^node_scrape_collector_reason_info\\{.*collector="${name}".*$`, 'm').exec(text)
    failed[name!] = /reason="((?:[^"\\]|\\.)*)"/.exec(reason?.[0] ?? '')?.[1] ?? ''
  }
  return failed
}

/** What has nothing to do with the back end. */
async function measureRest(lines: readonly Line[]): Promise<KernelRest> {
  const events = (name: string) =>
    items(lines, 'logs').filter(
      ({ name: event, attributes }) => event === name && attributes['process.executable.name'] === 'true',
    ).length
  for (let i = 0; i < counts.starts; i++) execFileSync('/usr/bin/true')
  const told = () =>
    items(lines, 'logs').filter(line => /^line \d+ of the log$/.test(String(line.body))).length
  appendFileSync(logFile, Array.from({ length: counts.lines }, (_, i) => `line ${i} of the log\n`).join(''))
  await settled(60_000, () => events('svc.process.exit') >= counts.starts && told() >= counts.lines)
  progress('events and lines were told')
  const busy =
    'function busyOfTheTest(n) { let x = n; while (true) x = (x * 31 + 7) % 1000003; } busyOfTheTest(1)'
  const profiles = {
    cpu: await profileOf('cpu', '/opt/kernel/ratio'),
    memory: await profileOf('memory', '/opt/kernel/touch'),
    off_cpu: await profileOf('off_cpu', '/opt/kernel/naps'),
    script: await profileOf('script', node, '-e', busy),
  }
  progress('profiles were taken')
  const { text } = await page(9100, '/metrics')
  progress('host metrics were read')
  const { discovered_services: services } = await json('/status/discovery')
  const server = (attributes: Values) =>
    attributes['server.port'] === ports.front && attributes['svc.network.side'] === 'server'
  return {
    opened: total(lines, 'svc.network.tcp.connections.opened', server),
    roundTrips: total(lines, 'svc.network.tcp.rtt', server),
    flowBytes: total(lines, 'svc.network.flow.io', ({ 'server.port': port }) => port === ports.front),
    execs: events('svc.process.exec'),
    exits: events('svc.process.exit'),
    statfsCalls: total(
      lines,
      'svc.syscall.duration',
      (attributes, resource) =>
        attributes['syscall.name'] === 'statfs' && resource['process.pid'] === client.child.pid,
    ),
    profiles,
    hostFamilies: [...text.matchAll(/^# TYPE node_/gm)].length,
    collectorsFailed: failing(text),
    lines: told(),
    services: services.flatMap(({ name, ports: at }: { name: string; ports: number[] }) =>
      at.map(port => `${name}:${port}`),
    ),
  }
}

async function doctored(): Promise<readonly Doctored[]> {
  const [program, ...args] = [...wrapper, svc, 'doctor', '--json', '--config', configuration]
  // Its status says whether something is missing, which is no failure of it.
  const text = await new Promise<string>(resolve => execFile(program!, args, (_, stdout) => resolve(stdout)))
  const { groups } = JSON.parse(text) as { groups: { topic: string; checks: Doctored[] }[] }
  return groups.flatMap(({ topic, checks }) =>
    checks.map(({ name, state, fault, detail }) => ({ topic, name, state, fault, detail })),
  )
}

const client = new Watched('client')

/** Everything, by programs that began before the agent. */
async function measure(): Promise<KernelReport> {
  await startLoopback(guestNative())
  const { lines } = await startHttpReceiver({ port: 4318, keep: true })
  const servers = [new Watched('front'), new Watched('back')]
  for (const each of [client, ...servers]) await each.said()
  mkdirSync('/var/log', { recursive: true })
  for (const directory of ['/var/lib/svc', '/run/svc']) {
    rmSync(directory, { recursive: true, force: true })
    mkdirSync(directory, { recursive: true })
    chownSync(directory, user, user)
  }
  writeFileSync(logFile, '')
  configure()
  const [program, ...args] = [...wrapper, svc, 'run', '--config', configuration]
  const began = performance.now()
  const agent = spawn(program!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  agent.stderr.setEncoding('utf8').on('data', text => {
    log += text
  })
  let ended: string | undefined
  agent.once('exit', code => {
    ended = `it ended with ${code}: ${log}`
  })
  const nobody = { clientSpans: 0, serverSpans: 0, clientCount: 0, serverCount: 0 }
  const answered = await settled(
    180_000,
    async () => ended !== undefined || (await page(own, '/ready')).status !== 0,
  )
  const startMs = performance.now() - began
  if (ended !== undefined || !answered)
    return {
      ...{
        release: release(),
        failed: ended ?? `no answer in three minutes: ${log}`,
        startMs,
        rssKb: 0,
        ready: {},
      },
      ...{
        degraded: [],
        programs: [],
        counters: {},
        http: nobody,
        redis: nobody,
        tls: nobody,
        chains: 0,
        errors: [],
      },
    }
  progress('the agent answers')
  const ebpf = () => json('/status/ebpf')
  const runtime = async () => ((await ebpf()).tls as TlsFile[]).find(({ path }) => path === node)
  const loaded = async () => ((await ebpf()).programs as { name: string }[]).map(({ name }) => name)
  const limits = async () => ((await json('/status')) as Pick<KernelReport, 'degraded'>).degraded
  const withoutTls = (await limits()).find(({ subsystem }) => subsystem === 'tls')
  if (withoutTls === undefined) await settled(180_000, async () => (await runtime()) !== undefined)
  const { attached = false, reason = withoutTls?.reason ?? 'it was not found' } = (await runtime()) ?? {}
  progress('TLS is looked at')
  await client.ask(`http ${counts.http}`)
  await client.ask(`redis ${counts.redis}`)
  await client.ask(`statfs ${counts.statfs}`)
  if (attached) await client.ask(`tls ${counts.tls}`)
  progress('all is asked')
  const http = () => seenAt(lines, 'http.SIDE.request.duration', servers, ports.front, ports.back)
  const redis = () => seenAt(lines, 'db.SIDE.operation.duration', servers, ports.redis)
  const tls = () => seenAt(lines, 'http.SIDE.request.duration', servers, ports.tls)
  await settled(
    60_000,
    () =>
      Object.values(http()).every(n => n >= 2 * counts.http) &&
      redis().clientCount >= counts.redis &&
      (!attached || Object.values(tls()).every(n => n >= counts.tls)),
  )
  progress('requests were told')
  const rest = what === 'all' && (await measureRest(lines))
  const doctor = what !== 'requests' && (await doctored())
  await pause(2_500) // what came twice, or belongs to nobody, is there by now
  progress('svc doctor has spoken')
  const tlsFault = attached ? {} : { tlsFault: reason }
  const ready = (await json('/ready')) as { checks: Record<string, string> }
  const degraded = await limits()
  const programs = await loaded()
  const { counters } = (await ebpf()) as { counters: Record<string, number> }
  const rssKb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid}/status`, 'latin1'))?.[1])
  agent.kill('SIGTERM')
  await settled(20_000, () => ended !== undefined)
  const logged = log.split('\n').filter(Boolean)
  for (const each of [client, ...servers]) each.child.kill('SIGKILL')
  return {
    ...{ release: release(), failed: undefined, startMs, rssKb, ready: ready.checks, degraded, programs },
    ...{ http: http(), redis: redis(), tls: tls(), chains: chainsIn(lines) },
    // What the runtime itself says is no JSON.
    errors: logged.filter(line => !line.startsWith('{') || /"level":"error"/.test(line)),
    counters: Object.fromEntries(Object.entries(counters).filter(([, count]) => count > 0)),
    ...tlsFault,
    ...(rest && { rest }),
    ...(doctor && { doctor }),
  }
}

measure().then(
  report => {
    process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0))
  },
  error => {
    console.log(JSON.stringify({ failed: String(error?.stack ?? error) }))
    process.exit(0)
  },
)
