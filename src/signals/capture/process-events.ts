import { constants } from 'node:os'
import { BoundedMap } from '../../foundation/lib/bounded-map.ts'
import { Interner } from '../../foundation/lib/interner.ts'
import { every, type Ticks } from '../../foundation/lib/shared-ticks.ts'
import { small } from '../../foundation/lib/small-tables.ts'
import { u64 } from '../../foundation/lib/u64.ts'
import { utf8Text } from '../../foundation/lib/utf8-text.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import type { Metric, NumberPoint } from '../../foundation/model/metric.ts'
import type { MetricDeclaration } from '../../foundation/model/metric-declaration.ts'
import type { ProcessNews } from '../../foundation/model/process-news.ts'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import { bss, svcProcessEvent, svcProcessKind } from '../../kernel/gen/process.ts'
import { beginLoad } from '../../kernel/load-ahead.ts'
import { loadObject, newFile } from '../../kernel/load-object.ts'
import type { Native, RingHandle } from '../../kernel/native.ts'

const programs = ['svc_process_exec', 'svc_process_fork', 'svc_process_exit'] as const
/** The tracepoint has two forms; the first program that the kernel accepts is used. */
export const oomPrograms = ['svc_process_oom', 'svc_process_oom_pid'] as const
const drainMs = 500
const clockMs = 10_000
const drainBytes = 64 * 1024
/** Maximum executables remembered until their process ends. */
const maxExecutables = 8_192
const twoTo32 = 4294967296
/** USER_HZ is 100 (include/uapi/asm-generic/param.h). */
const tickNs = 1e7
const info = { severity: 9, text: 'INFO' }
const warn = { severity: 13, text: 'WARN' }
const error = { severity: 17, text: 'ERROR' }

export interface ProcessEventsOptions {
  /** Maximum log records per second; further events are only counted. */
  readonly maxPerSecond?: number
  /** Receives each event before its record. */
  readonly onProcess?: (event: ProcessNews) => void
  /** Receives a record, which is reused for the next one. */
  readonly emit: (record: LogRecord) => void
}

/** All metrics of process events. */
export const processMetrics = {
  starts: counter('svc.process.starts', 'Processes that were started, without threads.'),
  execs: counter('svc.process.execs', 'Programs that processes executed (execve).'),
  exits: counter('svc.process.exits', 'Processes that ended.', [
    'svc.process.exit.reason',
    'svc.process.exit.signal',
  ]),
  oomKills: counter('svc.process.oom_kills', 'Processes that the kernel killed for lack of memory.'),
}

/** Begins to load the programs of `ProcessEvents`. */
export function beginProcessEvents(native: Native): void {
  beginLoad(native, newFile('process'), { name: 'process' })
}

/** Counts for the whole host since the start. */
export interface ProcessCounts {
  readonly starts: number
  readonly execs: number
  readonly oomKills: number
  /** By `success`, `error` and signal names. */
  readonly exits: ReadonlyMap<string, number>
}

/**
 * Program starts, process exits and OOM kills, as log records and metrics (bpf/process.bpf.c). Counts are exact;
 * records are delayed by 250 ms and limited in rate.
 */
export class ProcessEvents {
  /** Number of emitted records. */
  reported = 0
  /** Milliseconds spent since the start, including the consumers of the events. */
  busyMs = 0
  readonly #native: Native
  readonly #object: BpfObject
  readonly #emit: (record: LogRecord) => void
  readonly #onProcess: ((event: ProcessNews) => void) | undefined
  readonly #ring: RingHandle
  readonly #globals: DataView
  readonly #ticks: Ticks
  readonly #bytes = Buffer.alloc(drainBytes)
  readonly #record = new LogRecord()
  readonly #words = small(new Interner({ slots: 1024, maxLength: 64 }))
  /** Executables by process number. */
  readonly #executables = small(new BoundedMap<number, string>(maxExecutables))
  readonly #startUs: number
  /** Microseconds from the kernel's monotonic clock to the Unix epoch. */
  #offsetUs = 0
  #clockAt = 0
  #lastUntold = 0
  #draining = false
  #closed = false

  /** Loads and attaches. Throws if the kernel rejects the programs; nothing remains loaded then. */
  constructor(native: Native, { maxPerSecond = 1_000, emit, onProcess }: ProcessEventsOptions) {
    this.#native = native
    this.#emit = emit
    this.#onProcess = onProcess
    const { object } = loadObject(native, 'process', { optional: oomPrograms })
    this.#object = object
    let ring: RingHandle | undefined
    try {
      this.#globals = new DataView(native.mapView(this.#object.map('.bss')))
      this.limit(maxPerSecond)
      ring = native.ringOpen(this.#object.map('ring'))
      this.#ring = ring
      this.#setClock()
      this.#startUs = native.clock().realtimeUs
      for (const program of programs) this.#object.attach(program)
      const oom = oomPrograms.find(program => !this.#object.leftOut.has(program))
      if (oom !== undefined) this.#object.attach(oom)
      this.#ticks = every(drainMs, () => this.drain())
    } catch (fault) {
      if (ring !== undefined) native.ringClose(ring)
      this.#object.close()
      throw fault
    }
  }

  /** Programs that the kernel rejected, with reasons: it may accept only one of the two for `oom_kill`. */
  get leftOut(): ReadonlyMap<string, string> {
    return this.#object.leftOut
  }

  /** Sets the maximum log records per second; further events are only counted. */
  limit(maxPerSecond: number): void {
    if (!this.#closed) this.#globals.setUint32(bss.eventsMax, maxPerSecond, true)
  }

  /** Emits records of all pending events. Does nothing if called from a consumer of a record. */
  drain(): void {
    if (this.#closed || this.#draining) return
    if (performance.now() - this.#clockAt > clockMs) this.#setClock()
    this.#draining = true
    const beganMs = performance.now()
    try {
      for (;;) {
        const length = this.#native.ringDrain(this.#ring, this.#bytes)
        if (length === 0) return
        for (let at = 0; at < length; ) {
          const size = this.#bytes.readUInt32LE(at)
          if (size >= svcProcessEvent.size) this.#read(at + 8)
          at += 8 + ((size + 7) & ~7)
        }
      }
    } finally {
      this.#draining = false
      this.busyMs += performance.now() - beganMs
    }
  }

  /** Events without a record, because of the rate limit or lack of room. */
  get unreported(): number {
    if (this.#closed) return this.#lastUntold
    let all = 0
    for (let i = 0; i < svcProcessKind.length; i++) all += this.#number(bss.untold + 8 * i)
    return all
  }

  counts(): ProcessCounts {
    const exits = new Map<string, number>()
    for (let i = 0; i * 8 < bss.exitsSize; i++) {
      const times = this.#number(bss.exits + 8 * i)
      if (times > 0) exits.set(i === 0 ? 'success' : i === 1 ? 'error' : signalName(i - 1), times)
    }
    return {
      starts: this.#number(bss.starts),
      execs: this.#number(bss.execs),
      oomKills: this.#number(bss.oomKills),
      exits,
    }
  }

  /** Counts at `timeUs` (microseconds since the Unix epoch), for the host's resource. */
  metrics(timeUs: number): Metric[] {
    if (this.#closed) return []
    const startUs = this.#startUs
    const { starts, execs, oomKills, exits } = this.counts()
    const point = (attributes: Attributes, value: number): NumberPoint => ({
      attributes,
      startUs,
      timeUs,
      value,
    })
    const ends = [...exits].map(([by, times]) => point(exitAttributes(by), times))
    return [
      sum(processMetrics.starts, [point(none, starts)]),
      sum(processMetrics.execs, [point(none, execs)]),
      sum(processMetrics.exits, ends),
      sum(processMetrics.oomKills, [point(none, oomKills)]),
    ].filter(({ points }) => points.length > 0)
  }

  /** Detaches, emits pending records, and unloads. Idempotent. */
  close(): void {
    if (this.#closed) return
    this.#ticks.stop()
    for (const program of [...programs, ...oomPrograms]) this.#object.detach(program)
    this.drain()
    this.#lastUntold = this.unreported
    this.#closed = true
    this.#native.ringClose(this.#ring)
    this.#object.close()
  }

  #setClock(): void {
    const { monotonicNs, realtimeUs } = this.#native.clock()
    this.#offsetUs = realtimeUs - monotonicNs / 1000
    this.#clockAt = performance.now()
  }

  #number(at: number): number {
    return this.#globals.getUint32(at, true) + this.#globals.getUint32(at + 4, true) * twoTo32
  }

  #read(at: number): void {
    const bytes = this.#bytes
    const record = this.#record
    const timeNs = u64(bytes, at + svcProcessEvent.timeNs)
    record.timeUs = timeNs / 1000 + this.#offsetUs
    record.observedUs = record.timeUs
    record.droppedAttributes = 0
    record.attributes.clear()
    const pid = bytes.readUInt32LE(at + svcProcessEvent.pid)
    record.attributes.add('process.pid', pid)
    switch (svcProcessKind[bytes.readUInt32LE(at + svcProcessEvent.kind)]) {
      case 'exec':
        this.#exec(at, pid)
        break
      case 'exit':
        this.#exit(at, pid, timeNs)
        break
      case 'oom_kill':
        this.#oomKill(at, pid)
        break
      default:
        return
    }
    this.reported++
    this.#emit(record)
  }

  #exec(at: number, pid: number): void {
    const bytes = this.#bytes
    const record = this.#record
    const from = at + svcProcessEvent.path
    const length = Math.min(bytes.readUInt16LE(at + svcProcessEvent.pathLength), svcProcessEvent.pathSize)
    const path = utf8Text(bytes, from, from + length)
    this.#executables.set(pid, path)
    this.#notice('exec', at, pid, path)
    this.#severity(info)
    record.eventName = 'svc.process.exec'
    record.body = `process ${pid} runs ${path}`
    this.#describe(at, path)
  }

  #exit(at: number, pid: number, timeNs: number): void {
    const bytes = this.#bytes
    const record = this.#record
    const status = bytes.readUInt32LE(at + svcProcessEvent.status)
    const signal = status & 0x7f
    const code = (status >> 8) & 0xff
    const oomKilled = bytes[at + svcProcessEvent.oomKilled] !== 0
    const path = this.#executables.get(pid) ?? ''
    this.#executables.delete(pid)
    this.#notice('exit', at, pid, path)
    this.#severity(signal === 0 ? info : warn)
    record.eventName = 'svc.process.exit'
    this.#describe(at, path)
    const { attributes } = record
    const name = this.#nameOf(at, path)
    if (signal === 0) {
      record.body = `process ${pid} (${name}) exited with code ${code}`
      attributes.add('process.exit.code', code)
    } else {
      record.body = `process ${pid} (${name}) was killed by ${signalName(signal)}`
      attributes.add('svc.process.exit.signal', signalName(signal))
    }
    attributes.add(
      'svc.process.exit.reason',
      oomKilled ? 'oom_kill' : signal !== 0 ? 'signal' : code === 0 ? 'success' : 'error',
    )
    const startNs = u64(bytes, at + svcProcessEvent.startNs)
    if (startNs > 0 && startNs <= timeNs) attributes.add('svc.process.lifetime', (timeNs - startNs) / 1e9)
  }

  #oomKill(at: number, pid: number): void {
    const record = this.#record
    const path = this.#executables.get(pid) ?? ''
    const name = this.#nameOf(at, path)
    this.#severity(error)
    record.eventName = 'svc.process.oom_kill'
    record.body = `the kernel killed process ${pid} (${name}): out of memory`
    if (name !== '') record.attributes.add('process.executable.name', name)
    if (path !== '') record.attributes.add('process.executable.path', path)
  }

  #notice(kind: 'exec' | 'exit', at: number, pid: number, path: string): void {
    const bytes = this.#bytes
    this.#onProcess?.({
      kind,
      pid,
      start: Math.floor(u64(bytes, at + svcProcessEvent.bootNs) / tickNs),
      parent: bytes.readUInt32LE(at + svcProcessEvent.parent),
      user: bytes.readUInt32LE(at + svcProcessEvent.uid),
      path,
      comm: this.#text(at + svcProcessEvent.comm, svcProcessEvent.commSize),
      cgroupNames: this.#groupNames(at),
    })
  }

  #groupNames(at: number): readonly string[] {
    const group = this.#text(at + svcProcessEvent.group, svcProcessEvent.groupSize)
    return group === '' ? noNames : [group, this.#text(at + svcProcessEvent.above, svcProcessEvent.aboveSize)]
  }

  #severity({ severity, text }: { severity: number; text: string }): void {
    this.#record.severity = severity
    this.#record.severityText = text
  }

  #describe(at: number, path: string): void {
    const bytes = this.#bytes
    const record = this.#record
    const { attributes } = record
    attributes.add('process.parent_pid', bytes.readUInt32LE(at + svcProcessEvent.parent))
    attributes.add('process.real_user.id', bytes.readUInt32LE(at + svcProcessEvent.uid))
    const name = this.#nameOf(at, path)
    if (name !== '') attributes.add('process.executable.name', name)
    if (path !== '') attributes.add('process.executable.path', path)
    const cgroup = u64(bytes, at + svcProcessEvent.cgroup)
    if (cgroup !== 0) attributes.add('svc.cgroup.id', cgroup)
  }

  /** File name of the executable, otherwise the kernel's short name of the process. */
  #nameOf(at: number, path: string): string {
    const name = path.slice(path.lastIndexOf('/') + 1)
    if (name !== '') return name
    return this.#text(at + svcProcessEvent.comm, svcProcessEvent.commSize)
  }

  /** Text up to the first NUL. */
  #text(from: number, size: number): string {
    const bytes = this.#bytes
    let end = from
    while (end < from + size && bytes[end] !== 0) end++
    return this.#words.intern(bytes, from, end)
  }
}

const none = new Attributes()
const noNames: readonly string[] = []
const signalNames = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number as number, name]),
)
// Of two names for the same number, the one in signal(7).
for (const name of ['SIGABRT', 'SIGIO'] as const) signalNames.set(constants.signals[name], name)

/** Real-time signals have only numbers. */
function signalName(number: number): string {
  return signalNames.get(number) ?? `SIG${number}`
}

function exitAttributes(by: string): Attributes {
  return Attributes.of(
    by.startsWith('SIG')
      ? { 'svc.process.exit.reason': 'signal', 'svc.process.exit.signal': by }
      : { 'svc.process.exit.reason': by },
  )
}

function counter(name: string, description: string, attributes: readonly string[] = []): MetricDeclaration {
  return { name, description, unit: '{process}', kind: 'counter', attributes }
}

function sum({ name, description, unit }: MetricDeclaration, points: NumberPoint[]): Metric {
  return { kind: 'sum', name, description, unit, monotonic: true, integer: true, points }
}
