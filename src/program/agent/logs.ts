// Logs of containers, files and the journal, wired to the pipeline.

import type { Config } from '../../config/index.ts'
import { build } from '../../foundation/lib/build.ts'
import { type Change, change } from '../../foundation/lib/change.ts'
import type { CpuLever } from '../../foundation/lib/cpu-governor.ts'
import { CpuSteps } from '../../foundation/lib/cpu-steps.ts'
import type { ShareLosses } from '../../foundation/lib/fair-share.ts'
import { errorText, type Logger } from '../../foundation/lib/logger.ts'
import type { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import type { LogRecord } from '../../foundation/model/log.ts'
import type { Resource, Scope } from '../../foundation/model/resource.ts'
import type { ContainerResources } from '../../identity/entities/container-resources.ts'
import type { Entities } from '../../identity/entities/entities.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'
import { RemoteFiles } from '../../kernel/remote-files.ts'
import type { Intake } from '../../pipeline/batcher.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { journalContainer } from '../../signals/logs/journal-entry.ts'
import { LogFollower, type ReadingPace } from '../../signals/logs/log-follower.ts'
import { LogPositions } from '../../signals/logs/log-positions.ts'
import type { RecentLogs } from '../../signals/logs/recent-logs.ts'
import { RemoteLogs } from '../../signals/logs/remote-logs.ts'
import type { OmittedFiles } from '../../signals/logs/source-files.ts'
import { WaitingText } from '../../signals/logs/waiting-text.ts'
import type { Degradation } from '../../view/api/types.ts'
import { FollowedJournal } from './followed-journal.ts'
import type { HostEntity } from './host-resource.ts'
import { logSources } from './log-sources.ts'

export interface LogsOptions {
  readonly config: Config
  readonly pipeline: Pick<Pipeline, 'intake' | 'secured' | 'fill' | 'flush'>
  readonly entities: Entities
  readonly resources: ContainerResources
  /** The latest records, as exported. */
  readonly recent: RecentLogs
  readonly host: HostEntity
  readonly log: Logger
  readonly governor: MemoryGovernor
}

/** State of log collection; totals since the start of the agent. Costs nothing to read. */
export interface LogsCounts {
  readonly enabled: boolean
  /** By source. */
  readonly records: ReadonlyMap<string, number>
  readonly files: number
  readonly readBytes: number
  readonly paused: boolean
  readonly truncations: number
  readonly lostRotations: number
  /** What the last scan omitted for lack of room. */
  readonly leftOut: OmittedFiles
  /** The same since the start, and logs evicted in favour of an owner with fewer. */
  readonly losses: ShareLosses
  /** Positions evicted for lack of room. */
  readonly forgottenPositions: number
  /** Times that an unfinished text was emitted early because too much was waiting. */
  readonly cutTexts: number
  /** Why the journal is not read; '' if it is, or is disabled. */
  readonly journal: string
}

export interface LogsStatus extends LogsCounts {
  readonly behindBytes: number
  readonly followed: readonly { path: string; source: string; offset: number; size: number }[]
}

interface Running {
  readonly follower: LogFollower
  readonly journal: FollowedJournal | undefined
  isEnding: boolean
}

const mebibyte = 2 ** 20
/** Bytes of files to read per second, and intervals of searching files, by step of CPU reduction. */
const paces: readonly ReadingPace[] = [
  { bytesPerSecond: Number.POSITIVE_INFINITY, rarer: 1 },
  { bytesPerSecond: 8 * mebibyte, rarer: 2 },
  { bytesPerSecond: 2 * mebibyte, rarer: 4 },
  { bytesPerSecond: mebibyte / 2, rarer: 8 },
]

/** Maximum size in JSON, with all attributes, of 16 KiB: the longest part that Docker writes. */
const escapedBytes = 256 * 1024
const mostFiles = 10_000
const mostNames = 100_000
/** Approximate memory of a log's position, and of a directory entry. */
const positionBytes = 1280
const nameBytes = 96

/** Collects logs while the configuration enables it. */
export class Logs {
  readonly recent: RecentLogs
  readonly #options: LogsOptions
  readonly #scope: Scope = { name: 'svc/logs', version: build().version }
  readonly #records = new Map<string, number>()
  readonly #intakes = new Map<string, Intake<LogRecord>>()
  #config: Config
  #running: Running | undefined
  /** Shared by all followers: two that write the same file would overwrite each other's changes. */
  #positions: LogPositions | undefined
  /** Totals of replaced followers. */
  readonly #before = {
    readBytes: 0,
    truncations: 0,
    lostRotations: 0,
    refused: 0,
    taken: 0,
    busyMs: 0,
  }
  readonly #pace = new CpuSteps(paces, pace => this.#running?.follower.limit(pace))
  /** Limit of each table in bytes. */
  readonly #roomBytes: number
  readonly #waiting: WaitingText
  #fault: string | undefined
  #stopping: Promise<void> = Promise.resolve()
  #stopped = false

  constructor(options: LogsOptions) {
    this.#options = options
    this.recent = options.recent
    this.#config = options.config
    this.#roomBytes = options.governor.limitOf()
    this.#waiting = new WaitingText(this.#roomBytes)
    this.#govern(options.governor)
  }

  /** Whether anything is followed. */
  get isOn(): boolean {
    return this.#running !== undefined
  }

  get counts(): LogsCounts {
    const { follower, journal } = this.#running ?? {}
    const state = follower?.counts
    const { refused = 0, taken = 0 } = state?.losses ?? {}
    return {
      enabled: this.#running !== undefined,
      records: this.#records,
      files: state?.files ?? 0,
      readBytes: this.#before.readBytes + (state?.readBytes ?? 0),
      paused: state?.isPaused ?? false,
      truncations: this.#before.truncations + (state?.truncations ?? 0),
      lostRotations: this.#before.lostRotations + (state?.lostRotations ?? 0),
      leftOut: state?.leftOut ?? { files: 0, directories: 0 },
      losses: { refused: this.#before.refused + refused, taken: this.#before.taken + taken },
      forgottenPositions: this.#positions?.forgotten ?? 0,
      cutTexts: this.#waiting.cut,
      journal: journal?.state.reason ?? '',
    }
  }

  /** Reads the state of all followed logs. */
  get status(): LogsStatus {
    const state = this.#running?.follower.state
    return {
      ...this.counts,
      behindBytes: state?.behindBytes ?? 0,
      followed: (state?.byFile ?? []).map(({ path, source, offset, sizeBytes }) => ({
        path,
        source,
        offset,
        size: sizeBytes,
      })),
    }
  }

  get faults(): readonly Degradation[] {
    const faults: Degradation[] = []
    if (this.#fault !== undefined)
      faults.push({
        subsystem: 'logs',
        reason: this.#fault,
        hint: 'correct the configuration; a pattern is an absolute path, such as /var/log/shop/*.gz',
      })
    const journal = this.#running?.journal?.state
    if (journal !== undefined && journal.reason !== '' && !this.#running?.isEnding)
      faults.push({ subsystem: 'journal', reason: journal.reason, hint: journal.hint })
    return faults
  }

  /**
   * The lever for CPU reduction. No data is lost that still exists at its turn: owners of logs take turns, so that the
   * largest writer waits longest.
   */
  get lever(): CpuLever {
    const pace = this.#pace
    return {
      costMs: () => this.#before.busyMs + (this.#running?.follower.busyMs ?? 0),
      lower: () => this.#running !== undefined && pace.lower(),
      raise: () => pace.raise(),
      get effect() {
        const { bytesPerSecond, rarer } = pace.value
        return pace.isLowered
          ? `log files are read at most at ${bytesPerSecond / mebibyte} MiB/s and searched for every ${rarer} s; the rest is read later`
          : ''
      },
    }
  }

  /** There may be a new log. */
  hurry(): void {
    this.#running?.follower.hurry()
  }

  start(): void {
    this.#fault = undefined
    const { mode, agent } = this.#config
    if (this.#stopped || mode !== 'agent' || !agent.logs.enabled) return
    try {
      this.#running = this.#open()
    } catch (error) {
      this.#fault = errorText(error)
      this.#options.log.warn('logs are not collected', { reason: this.#fault })
    }
  }

  /** Applies a reload; reading continues from the same positions. */
  prepare(config: Config): Change {
    return change(() => {
      this.#config = config
      this.#stopping = this.#stopping.then(() => this.#end()).then(() => this.start())
    })
  }

  /** Stops reading, and emits what waits for more lines. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#stopping
    await this.#end()
  }

  async #end(): Promise<void> {
    const running = this.#running
    if (running === undefined) return
    running.isEnding = true
    this.#hurryRecords()
    await Promise.all([running.journal?.stop(), running.follower.stop()])
    this.#running = undefined
    this.#before.busyMs += running.follower.busyMs
    const { readBytes, truncations, lostRotations, losses } = running.follower.counts
    this.#before.readBytes += readBytes
    this.#before.truncations += truncations
    this.#before.lostRotations += lostRotations
    this.#before.refused += losses.refused
    this.#before.taken += losses.taken
  }

  /** Registers the memory of logs, to release it under pressure. */
  #govern(governor: MemoryGovernor): void {
    governor.register({
      name: 'names of log files',
      kind: 'cache',
      bytes: () => this.#running?.follower.nameBytes ?? 0,
      shed: bytes => this.#running?.follower.shedNames(bytes) ?? 0,
    })
    governor.register({
      name: 'positions of logs',
      kind: 'detail',
      bytes: () => this.#positions?.bytes ?? 0,
      shed: bytes =>
        this.#positions?.shed(bytes, position => this.#running?.follower.follows(position) ?? true) ?? 0,
    })
    governor.register({
      name: 'unfinished log texts',
      kind: 'intake',
      bytes: () => this.#waiting.bytes,
      shed: bytes => this.#waiting.shed(bytes),
    })
  }

  #open(): Running {
    const { pipeline, entities, resources, host, log } = this.#options
    const settings = this.#config.agent.logs
    const warn = (reason: string, hint: string) => log.warn('log collection is limited', { reason, hint })
    this.#positions ??= new LogPositions(settings.position_file, warn, this.#roomBytes)
    const positions = this.#positions
    const secured = async () => {
      const done = pipeline.secured('logs')
      if (this.#running?.isEnding) this.#hurryRecords()
      await done
      // The follower that took over after a reload has newer values.
      if (this.#running?.follower !== follower && !this.#stopped)
        throw new Error('another reader has taken over these logs')
    }
    const native = loadNative()
    const follower = new LogFollower({
      sources: logSources({
        settings,
        entities,
        waiting: this.#waiting,
        emit: (source, placeOf) => record =>
          this.#take(source, placeOf === undefined ? host.resource : resources.of(placeOf()), record),
      }),
      positions,
      remoteLogs: new RemoteLogs(new RemoteFiles({ log })),
      startAt: settings.start_at,
      // Each file needs a position that is not evicted for others.
      maxFiles: Math.min(mostFiles, Math.floor(this.#roomBytes / positionBytes)),
      maxNames: Math.min(mostNames, Math.floor(this.#roomBytes / nameBytes)),
      maxLineBytes: Math.max(settings.max_line_size, escapedBytes),
      pressure: () => pipeline.fill('logs'),
      secured,
      warn,
      nextData: native instanceof Unsupported ? undefined : native.nextData,
    })
    const journal = settings.journald
      ? new FollowedJournal({
          settings,
          positions,
          pressure: () => pipeline.fill('logs'),
          secured,
          warn: message => log.warn(message),
          emit: record => {
            const id = journalContainer(record)
            const place = { id, runtime: '', podUid: '' }
            this.#take('journal', id === '' ? host.resource : resources.of(place), record)
          },
        })
      : undefined
    follower.limit(this.#pace.value)
    void follower.start()
    return { follower, journal, isEnding: false }
  }

  /** Sends records without waiting for a full batch. */
  #hurryRecords(): void {
    // On failure, the records leave when their batch is due.
    this.#options.pipeline.flush(0).catch(() => undefined)
  }

  #take(source: string, resource: Resource, record: LogRecord): void {
    this.#records.set(source, (this.#records.get(source) ?? 0) + 1)
    let intake = this.#intakes.get(source)
    if (intake === undefined) {
      intake = this.#options.pipeline.intake('logs', () => source)
      this.#intakes.set(source, intake)
    }
    intake.add(resource, this.#scope, record)
  }
}
