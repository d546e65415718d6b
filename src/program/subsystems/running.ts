// The subsystems of one agent, from its start to its end.

import type { Config, LoadedConfig } from '../../config/index.ts'
import { errorText, limitRepeats } from '../../foundation/lib/logger.ts'
import type { Finding } from '../../kernel/need.ts'
import type { StatusPage } from '../../view/api/status-page.ts'
import { reportHint } from '../agent/last-run.ts'
import type { Reloadable } from '../agent/reload.ts'
import { type Metric, SelfMetrics, values } from '../agent/self-metrics.ts'
import {
  type Agent,
  Events,
  type Fault,
  faultsOf,
  type StartOptions,
  type State,
  type Subsystem,
  type SubsystemState,
} from '../agent/subsystem.ts'
import { reload } from './reload.ts'

/** Interval of logging a repeated failure, such as of metrics. */
const repeatMs = 600_000

export class Running implements Agent {
  readonly options: StartOptions
  readonly config: Config
  readonly contents: Promise<ReadonlyMap<string, string>>
  readonly events = new Events()
  readonly metrics: SelfMetrics
  readonly reloadables: Reloadable[] = []
  readonly startedMs = performance.now()
  /** Stopping has begun. */
  isStopping = false
  readonly #list: readonly Subsystem[]
  /** In the order of creation. */
  readonly #own = new Map<Subsystem, unknown>()
  readonly #creating = new Set<Subsystem>()
  /** Why they did not start. */
  readonly #unstarted = new Map<Subsystem, string>()
  readonly #repeated: ReturnType<typeof limitRepeats>
  #markCreated!: () => void

  constructor(
    list: readonly Subsystem[],
    options: StartOptions,
    contents: Promise<ReadonlyMap<string, string>>,
  ) {
    this.#list = list
    this.options = options
    this.config = options.loaded.config
    this.#repeated = limitRepeats(options.log, repeatMs)
    // No reload starts before: it would miss those not created yet.
    const created = new Promise<void>(resolve => {
      this.#markCreated = resolve
    })
    this.contents = created.then(() => contents)
    const namespace = this.config.self_telemetry.prometheus_namespace
    this.metrics = declareMetrics(list, namespace, this.events, () => this)
  }

  loaded(): LoadedConfig {
    return this.of(reload).current
  }

  of<Own>(subsystem: Subsystem<Own>): Own {
    if (!this.#own.has(subsystem)) {
      const own = this.#create(subsystem)
      if (own instanceof Promise) {
        own.catch(() => undefined)
        throw new Error(
          `cannot use ${subsystem.name}: it is created asynchronously; list it before those that use it`,
        )
      }
      this.#own.set(subsystem, own)
    }
    return this.#own.get(subsystem) as Own
  }

  /** The same if it was created; creates nothing. */
  ifCreated<Own>(subsystem: Subsystem<Own>): Own | undefined {
    return this.#own.get(subsystem) as Own | undefined
  }

  /** Creates all, slow ones one after another. Rejects with the error of one of them. */
  async create(): Promise<void> {
    for (const subsystem of this.#list)
      if (!this.#own.has(subsystem)) this.#own.set(subsystem, await this.#create(subsystem))
    this.#markCreated()
  }

  async start(): Promise<void> {
    await this.#each('start', (subsystem, reason) => this.#unstarted.set(subsystem, reason))
  }

  /** Stops the intake. */
  async stop(): Promise<void> {
    this.isStopping = true
    await this.#each('stop')
  }

  /** Closes what must answer until the pipeline is drained. */
  async close(): Promise<void> {
    await this.#each('close')
  }

  /** Of those with a state, in the order of the list. */
  states(): readonly SubsystemState[] {
    const { config } = this.loaded()
    return this.#list.flatMap(subsystem => {
      const state = this.#stateOf(subsystem, config)
      return state === undefined ? [] : [{ subsystem, state }]
    })
  }

  pages(): readonly StatusPage<void>[] {
    return this.#list.flatMap(subsystem =>
      (subsystem.pages ?? []).map(page => ({ ...page, read: () => page.read(this.of(subsystem)) })),
    )
  }

  /** Checks of `svc doctor` that need no test. */
  known(): ReadonlyMap<string, readonly Finding[]> {
    const all = this.#list.flatMap(subsystem => Object.entries(subsystem.checks?.(this.of(subsystem)) ?? {}))
    return new Map(all.map(([check, finding]) => [check, [finding]]))
  }

  /** Reasons why subsystems do not work, or only in part. */
  faults(): readonly Fault[] {
    return faultsOf(this.states())
  }

  /** Logs a failure of a subsystem; a repeated one only now and then. */
  cannot(what: string, error: unknown): void {
    this.#repeated('error', what, `cannot ${what}`, { reason: errorText(error), hint: reportHint })
  }

  #create(subsystem: Subsystem): unknown {
    const { name, keys, prepare } = subsystem
    if (this.#creating.has(subsystem))
      throw new Error(
        `cannot use ${name}: it is not created yet; of two that need each other, one must use events`,
      )
    if (prepare !== undefined && keys === undefined)
      throw new Error(`cannot create ${name}: no keys, so prepare would never be called`)
    this.#creating.add(subsystem)
    const done = () => {
      this.#creating.delete(subsystem)
    }
    let own: unknown
    try {
      own = subsystem.create(this)
    } finally {
      if (!(own instanceof Promise)) done()
    }
    if (prepare !== undefined)
      this.reloadables.push({
        name,
        prepare: (config, changed) =>
          touches(changed, keys!) ? prepare(this.of(subsystem), config, changed) : undefined,
      })
    return own instanceof Promise ? own.finally(done) : own
  }

  /** A failure of one does not stop the others. */
  async #each(
    step: 'start' | 'stop' | 'close',
    failed?: (subsystem: Subsystem, reason: string) => void,
  ): Promise<void> {
    for (const [subsystem, own] of this.#own) {
      try {
        await subsystem[step]?.(own)
      } catch (error) {
        this.cannot(`${step} ${subsystem.name}`, error)
        failed?.(subsystem, errorText(error))
      }
    }
  }

  #stateOf(subsystem: Subsystem, config: Config): State | undefined {
    if (!this.#own.has(subsystem)) return undefined
    const { name } = subsystem
    const unstarted = this.#unstarted.get(subsystem)
    if (unstarted !== undefined) return brokenState(name, unstarted)
    try {
      return subsystem.state?.(this.#own.get(subsystem), config)
    } catch (error) {
      this.cannot(`read the state of ${name}`, error)
      return brokenState(name, errorText(error))
    }
  }
}

function brokenState(subsystem: string, reason: string): State {
  return { state: 'failed', faults: [{ subsystem, reason, hint: reportHint }] }
}

/** Declares the metrics of all. `running` is only called when a page is written. */
export function declareMetrics(
  list: readonly Subsystem[],
  namespace: string,
  events: Events,
  running: () => Pick<Running, 'of' | 'faults' | 'cannot'>,
): SelfMetrics {
  const metrics = new SelfMetrics(namespace, (what, error) => running().cannot(what, error))
  const degraded: Metric<unknown> = values(
    'subsystem',
    'Number of reasons why a subsystem is degraded; svc status lists them.',
    () => {
      const reasons = new Map<string, number>()
      for (const { subsystem } of running().faults())
        reasons.set(subsystem, (reasons.get(subsystem) ?? 0) + 1)
      return reasons
    },
  )
  metrics.add('degraded', degraded, () => undefined)
  for (const subsystem of list) {
    const { sync } = subsystem
    const own = () => running().of(subsystem)
    for (const [name, metric] of Object.entries(subsystem.metrics ?? {})) metrics.add(name, metric, own)
    if (sync !== undefined) metrics.before(subsystem.name, () => sync(own()))
    subsystem.declare?.(metrics, events)
  }
  return metrics
}

function touches(changed: ReadonlySet<string>, branches: readonly string[]): boolean {
  for (const key of changed)
    if (branches.some(branch => key === branch || key.startsWith(`${branch}.`))) return true
  return false
}
