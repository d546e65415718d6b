import { createHash } from 'node:crypto'
import { closeSync, openSync, readlinkSync, readSync } from 'node:fs'
import { BoundedMap } from '../lib/bounded-map.ts'
import { Attributes } from '../model/attributes.ts'
import type { Resource } from '../model/resource.ts'
import { listeningPorts } from './listening-ports.ts'
import { judge, type SelectionRules, type Verdict } from './selection.ts'
import { type ProcessFacts, serviceName } from './service-name.ts'

export interface ProcessTableOptions {
  /** Where the host's /proc is mounted. */
  readonly procDir?: string
  /** `host.name` of every resource. */
  readonly hostName: string
  /** Tells processes of this boot from those of others with the same numbers. */
  readonly bootId: string
  /** Added to every resource, and stronger than what is found. */
  readonly attributes?: Attributes
  /** `telemetry.sdk.version`: the version of svc. */
  readonly version: string
  readonly maxProcesses?: number
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
}

/**
 * Knows who the observed processes are. Each process has one resource for as long as it runs one program; it is read
 * from /proc when the process is first seen, and looked at again when a second has passed, because a number may by
 * then belong to another process.
 */
export class ProcessTable {
  private readonly processes: BoundedMap<number, Process>
  private readonly buffer = Buffer.alloc(maxFileBytes)
  private readonly procDir: string
  private readonly options: ProcessTableOptions
  private readonly now: () => number
  /** Resources that ended, for each of those who ask. */
  private readonly endings = new Map<object, Resource[]>()
  private proc = true
  private rules: SelectionRules = { instrument: [], exclude: [] }
  private lookedMs = Number.NEGATIVE_INFINITY

  constructor(options: ProcessTableOptions) {
    this.options = options
    this.procDir = options.procDir ?? '/proc'
    this.now = options.now ?? (() => performance.now())
    this.processes = new BoundedMap(options.maxProcesses ?? 4_096, (_pid, process) =>
      this.end(process.resource),
    )
  }

  /**
   * The numbers of processes are not those of /proc: from now on nothing is read there, and the kernel's short name is
   * all that is known of a process. They end when there are too many.
   */
  withoutProc(): void {
    this.proc = false
  }

  /** Which processes are observed, from now on. */
  select(rules: SelectionRules): void {
    this.rules = rules
    this.processes.forEach(process => {
      process.verdict = undefined
    })
  }

  /**
   * Why nothing is told of what a process does: `not_selected`, `instrumented` where it exports spans of its own, or ''
   * where it is observed.
   */
  hidden(pid: number, comm: string): '' | 'not_selected' | 'instrumented' {
    const process = this.process(pid, comm)
    process.called = true
    if (!this.verdictOf(pid, process).observed) return 'not_selected'
    return this.now() - process.exportedMs < instrumentedMs ? 'instrumented' : ''
  }

  /** Whether a process is observed at all. Unlike `hidden` this does not say that a call of it was seen. */
  selected(pid: number, comm: string): boolean {
    return this.verdictOf(pid, this.process(pid, comm)).observed
  }

  /** A process has exported spans of its own. */
  exported(pid: number, comm: string): void {
    this.process(pid, comm).exportedMs = this.now()
  }

  /**
   * What is known of a process, and why it is observed or not; undefined where there is none with this number. Whoever
   * asks changes nothing: a process that did nothing does not become one of those that are known.
   */
  explain(pid: number): ProcessView | undefined {
    if (!this.proc || this.startOf(pid) === unknownStart) return undefined
    const known = this.processes.get(pid)
    const now = this.now()
    const process =
      known === undefined ? this.made(pid, this.comm, now) : this.check(pid, this.comm, known, now)
    const { resource, facts, exportedMs, ports, called } = process
    const verdict = this.verdictOf(pid, process)
    const instrumented = now - exportedMs < instrumentedMs
    return {
      pid,
      name: String(resource.attributes.get('service.name')),
      executable: facts.executable,
      listening: listeningPorts(this.procDir, pid),
      served: [...ports],
      seen: called,
      observed: verdict.observed && !instrumented,
      reason: instrumented ? 'it exports spans of its own: only its metrics are made here' : verdict.reason,
    }
  }

  /** Numbers of processes that are known, at most so many. */
  pids(most: number): number[] {
    const pids: number[] = []
    this.processes.forEach((_process, pid) => {
      if (pids.length < most) pids.push(pid)
    })
    return pids
  }

  /** How many processes are known. */
  get size(): number {
    return this.processes.size
  }

  /**
   * The resource of a process; `comm` names it if it ended before anybody looked. `servedPort` is where it has just
   * answered somebody, 0 for nowhere.
   */
  resource(pid: number, comm: string, servedPort = 0): Resource {
    const process = this.process(pid, comm)
    if (servedPort !== process.servedPort && servedPort !== 0) serve(process, servedPort)
    return process.resource
  }

  /**
   * The resources of processes that ended, were replaced or forgotten since the last call. Looks at every process that
   * is known (about 10 µs each). Each `reader` is told all, from its first question on.
   */
  ended(reader: object): Resource[] {
    this.look()
    const ended = this.endings.get(reader)
    if (ended !== undefined) return ended.splice(0)
    this.endings.set(reader, [])
    return []
  }

  /**
   * The services that are running now, by name: at most 1,000 of them, each with at most 64 ports. Looks at every
   * process that is known, like `ended`, but only once in a second.
   */
  services(): Service[] {
    if (this.now() - this.lookedMs >= checkEveryMs) this.look()
    const found = new Map<
      string,
      { name: string; namespace: string; instances: number; ports: Set<number> }
    >()
    this.processes.forEach(({ resource, ports, start }) => {
      // It ended before anybody looked.
      if (this.proc && start === unknownStart) return
      const name = String(resource.attributes.get('service.name'))
      const namespace = String(resource.attributes.get('service.namespace') ?? '')
      const id = `${name}\0${namespace}`
      const service = found.get(id) ?? { name, namespace, instances: 0, ports: new Set() }
      found.set(id, service)
      service.instances++
      for (const port of ports) service.ports.add(port)
    })
    return [...found]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, maxServices)
      .map(([, service]) => ({
        ...service,
        ports: [...service.ports].sort((a, b) => a - b).slice(0, maxPorts),
      }))
  }

  private process(pid: number, comm: string): Process {
    const now = this.now()
    const process = this.processes.get(pid)
    if (process === undefined) return this.read(pid, comm, now)
    return now - process.checkedMs >= checkEveryMs ? this.check(pid, comm, process, now) : process
  }

  /** What is decided of it holds for a while: it may begin to listen at a port. */
  private verdictOf(pid: number, process: Process): Verdict {
    const now = this.now()
    if (process.verdict === undefined || now - process.judgedMs >= judgeEveryMs) {
      process.judgedMs = now
      process.verdict = judge(this.rules, {
        name: String(process.resource.attributes.get('service.name')),
        executable: process.facts.executable,
        listening: () => [...process.ports, ...listeningPorts(this.procDir, pid)],
      })
    }
    return process.verdict
  }

  /** Looks at every process, and lets go of those that ended. */
  private look(): void {
    this.lookedMs = this.now()
    if (!this.proc) return
    this.processes.forEach((process, pid) => {
      if (this.startOf(pid) === process.start && process.start !== unknownStart) return
      this.processes.delete(pid)
      this.end(process.resource)
    })
  }

  /** Looks again at a process that is known. */
  private check(pid: number, comm: string, known: Process, now: number): Process {
    const start = this.startOf(pid)
    known.checkedMs = now
    // Gone: what still comes of it was on its way before.
    if (start === unknownStart) return known
    if (start === known.start && this.comm === known.comm) return known
    const facts = this.factsOf(pid)
    if (start === known.start && sameProgram(facts, known.facts)) {
      // A thread's or a program's new name for itself.
      known.comm = this.comm
      return known
    }
    this.end(known.resource)
    return this.read(pid, comm, now)
  }

  private read(pid: number, comm: string, now: number): Process {
    const process = this.made(pid, comm, now)
    this.processes.set(pid, process)
    return process
  }

  private made(pid: number, comm: string, now: number): Process {
    const start = this.startOf(pid)
    const facts: ProcessFacts =
      start === unknownStart ? { comm, executable: '', args: [], cwd: '' } : this.factsOf(pid)
    return {
      start,
      comm: facts.comm,
      facts,
      resource: this.describe(pid, start, facts),
      checkedMs: now,
      servedPort: 0,
      ports: [],
      verdict: undefined,
      judgedMs: 0,
      exportedMs: Number.NEGATIVE_INFINITY,
      called: false,
    }
  }

  private end(resource: Resource): void {
    // Nobody asks: the oldest are let go, so that the list cannot grow without bound.
    for (const ended of this.endings.values()) {
      if (ended.length >= maxEnded) ended.shift()
      ended.push(resource)
    }
  }

  /** The name that `startOf` read last. */
  private comm = ''

  /** When the process started, in clock ticks since boot; `unknownStart` if there is none. Sets `comm`. */
  private startOf(pid: number): number {
    if (!this.proc) return unknownStart
    const stat = this.file(pid, 'stat')
    // The name stands in parentheses and may itself hold any character (proc_pid_stat(5)).
    const open = stat.indexOf('(')
    const close = stat.lastIndexOf(')')
    if (open < 0 || close < open) return unknownStart
    this.comm = stat.slice(open + 1, close)
    // starttime is field 22; the state, field 3, follows the name.
    const start = Number(stat.slice(close + 2).split(' ', 20)[19])
    return Number.isSafeInteger(start) ? start : unknownStart
  }

  private factsOf(pid: number): ProcessFacts {
    const args = this.file(pid, 'cmdline').split('\0')
    if (args.at(-1) === '') args.pop()
    // A deleted executable was replaced by an update; its name still holds.
    const executable = this.link(pid, 'exe').replace(/ \(deleted\)$/, '')
    return { comm: this.comm, executable, args, cwd: this.link(pid, 'cwd') }
  }

  private describe(pid: number, start: number, facts: ProcessFacts): Resource {
    const { hostName, version } = this.options
    const environment = start === unknownStart ? emptyEnvironment : readEnvironment(this.file(pid, 'environ'))
    const { name, runtime, language } = serviceName(facts)
    const attributes = new Attributes()
    attributes.add('service.name', bounded(name))
    attributes.add('service.instance.id', this.instanceId(pid, start))
    attributes.add('process.pid', pid)
    const executable = facts.executable.slice(facts.executable.lastIndexOf('/') + 1) || facts.comm
    if (executable !== '') attributes.add('process.executable.name', bounded(executable))
    if (facts.executable !== '') attributes.add('process.executable.path', bounded(facts.executable))
    // Only the first word: what follows may hold secrets.
    const command = facts.args[0] ?? ''
    if (command !== '') attributes.add('process.command', bounded(command.split(' ', 1)[0]!))
    if (runtime !== '') attributes.add('process.runtime.name', runtime)
    attributes.add('host.name', hostName)
    attributes.add('telemetry.sdk.name', 'svc')
    attributes.add('telemetry.sdk.version', version)
    if (language !== '') attributes.add('telemetry.sdk.language', language)
    for (const [key, value] of environment.attributes) attributes.set(key, value)
    if (environment.serviceName !== '') attributes.set('service.name', environment.serviceName)
    const added = this.options.attributes
    for (let i = 0; i < (added?.size ?? 0); i++) attributes.set(added!.keys[i]!, added!.values[i]!)
    return { attributes }
  }

  /** The same for as long as the process lives, also over restarts of the agent: UUID version 5 of what it is. */
  private instanceId(pid: number, start: number): string {
    const digest = createHash('sha1')
      .update(instanceNamespace)
      .update(`${this.options.hostName}/${this.options.bootId}/${pid}/${start}`)
      .digest()
    digest[6] = (digest[6]! & 0x0f) | 0x50
    digest[8] = (digest[8]! & 0x3f) | 0x80
    const hex = digest.toString('hex', 0, 16)
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
  }

  /** The beginning of a file of the process; '' where it cannot be read. */
  private file(pid: number, name: string): string {
    let fd = -1
    try {
      fd = openSync(`${this.procDir}/${pid}/${name}`, 'r')
      let size = 0
      // The kernel hands out about a page with each read.
      for (;;) {
        const more = readSync(fd, this.buffer, size, this.buffer.length - size, null)
        size += more
        if (more === 0 || size === this.buffer.length) return this.buffer.toString('utf8', 0, size)
      }
    } catch {
      // Gone, or not ours to read: both are answered by an empty text.
      return ''
    } finally {
      if (fd >= 0) closeSync(fd)
    }
  }

  private link(pid: number, name: string): string {
    try {
      return readlinkSync(`${this.procDir}/${pid}/${name}`)
    } catch {
      // As for files; kernel threads have no executable.
      return ''
    }
  }
}

interface Process {
  /** Clock ticks since boot. */
  readonly start: number
  readonly facts: ProcessFacts
  readonly resource: Resource
  comm: string
  checkedMs: number
  /** Where it answered last; 0: nowhere yet. */
  servedPort: number
  /** All of those ports, up to a bound. */
  readonly ports: number[]
  /** Whether it is observed; undefined: to be decided. */
  verdict: Verdict | undefined
  judgedMs: number
  /** When it last exported spans of its own. */
  exportedMs: number
  /** A call of it was seen, be it told or not. */
  called: boolean
}

/** What is known of one process. */
export interface ProcessView {
  readonly pid: number
  /** `service.name`. */
  readonly name: string
  /** '' where it may not be read. */
  readonly executable: string
  /** TCP ports that it listens at, and those where it was seen to answer. */
  readonly listening: readonly number[]
  readonly served: readonly number[]
  /** Calls of it were seen since it is known. */
  readonly seen: boolean
  readonly observed: boolean
  readonly reason: string
}

/** Processes that have one name. */
export interface Service {
  readonly name: string
  /** '' for none. */
  readonly namespace: string
  /** Processes that are running. */
  readonly instances: number
  /** Where they answered requests, in rising order; none for a mere client. */
  readonly ports: readonly number[]
}

function serve(process: Process, port: number): void {
  process.servedPort = port
  const { ports } = process
  if (ports.length < maxPorts && !ports.includes(port)) ports.push(port)
}

/** How often a process that is asked for is looked at again. */
const checkEveryMs = 1_000
/** How long a decision holds that ports may change. */
const judgeEveryMs = 10_000
/** How long an export of its own spans says that a process is instrumented: several times what SDKs take between two. */
const instrumentedMs = 600_000
const unknownStart = -1
const maxEnded = 8_192
/** Environments and command lines may be 2 MB; the beginning is enough. */
const maxFileBytes = 256 * 1024
const maxServices = 1_000
/** Of one service, and of one process. */
const maxPorts = 64
const maxEnvironmentAttributes = 64
const maxValueLength = 1_024

/** Namespace of `service.instance.id` (semantic conventions, service attributes). */
const instanceNamespace = Buffer.from('4d63009a8d0f11eeaad74c796ed8e320', 'hex')

function sameProgram(a: ProcessFacts, b: ProcessFacts): boolean {
  return a.executable === b.executable && a.args.join('\0') === b.args.join('\0')
}

function bounded(value: string): string {
  return value.length > maxValueLength ? value.slice(0, maxValueLength) : value
}

interface Environment {
  /** OTEL_SERVICE_NAME, which wins over an attribute of the same meaning. */
  readonly serviceName: string
  readonly attributes: readonly (readonly [string, string])[]
}

const emptyEnvironment: Environment = { serviceName: '', attributes: [] }

/** Takes what OpenTelemetry defines, and nothing else, out of a process's environment. */
function readEnvironment(environ: string): Environment {
  let name = ''
  let attributes: (readonly [string, string])[] = []
  for (const variable of environ.split('\0')) {
    if (variable.startsWith('OTEL_SERVICE_NAME='))
      name = bounded(variable.slice('OTEL_SERVICE_NAME='.length).trim())
    else if (variable.startsWith('OTEL_RESOURCE_ATTRIBUTES='))
      attributes = parseResourceAttributes(variable.slice('OTEL_RESOURCE_ATTRIBUTES='.length))
  }
  return { serviceName: name, attributes }
}

/**
 * Reads `key=value,key=value`, values percent-encoded (OpenTelemetry resource SDK). What tells of the process itself
 * is known better here. As the specification asks, nothing of a list with a fault in it is taken.
 */
function parseResourceAttributes(text: string): (readonly [string, string])[] {
  const attributes: (readonly [string, string])[] = []
  for (const pair of text.split(',', maxEnvironmentAttributes)) {
    if (pair.trim() === '') continue
    const sign = pair.indexOf('=')
    const key = pair.slice(0, Math.max(0, sign)).trim()
    if (key === '') return []
    if (/^(process|telemetry\.sdk)\./.test(key)) continue
    try {
      const value = bounded(decodeURIComponent(pair.slice(sign + 1).trim()))
      if (value !== '') attributes.push([bounded(key), value])
    } catch {
      // A percent sign that encodes nothing.
      return []
    }
  }
  return attributes
}
