// The subsystems of one agent, from its start to its end.

import type { StatusPage } from '../api/status-page.ts'
import type { Config, LoadedConfig } from '../config/index.ts'
import type { Finding } from '../kernel/need.ts'
import type { Reloadable } from './reload.ts'
import { type Metric, SelfMetrics, values } from './self-metrics.ts'
import {
  type Agent,
  Events,
  type Fault,
  type Standing,
  type StartOptions,
  type Subsystem,
} from './subsystem.ts'
import { reload } from './subsystems/reload.ts'

export class Running implements Agent {
  readonly options: StartOptions
  readonly config: Config
  readonly contents: Promise<ReadonlyMap<string, string>>
  readonly events = new Events()
  readonly metrics: SelfMetrics
  readonly reloadables: Reloadable[] = []
  readonly startedMs = performance.now()
  /** The end has begun. */
  isStopping = false
  readonly #list: readonly Subsystem[]
  /** In the order of creation. */
  readonly #own = new Map<Subsystem, unknown>()
  readonly #creating = new Set<Subsystem>()

  constructor(
    list: readonly Subsystem[],
    options: StartOptions,
    contents: Promise<ReadonlyMap<string, string>>,
  ) {
    this.#list = list
    this.options = options
    this.config = options.loaded.config
    this.contents = contents
    const namespace = this.config.self_telemetry.prometheus_namespace
    this.metrics = declareMetrics(list, namespace, this.events, () => this)
  }

  loaded(): LoadedConfig {
    return this.of(reload).current
  }

  of<Own>(subsystem: Subsystem<Own>): Own {
    if (!this.#own.has(subsystem)) this.#create(subsystem)
    return this.#own.get(subsystem) as Own
  }

  /** Creates all. One that is not ready yet is `undefined`. Rejects with the `StartError` of one of them. */
  async create(): Promise<void> {
    for (const subsystem of this.#list) {
      const own = this.of(subsystem)
      if (!(own instanceof Promise)) continue
      this.#own.set(subsystem, undefined)
      this.#own.set(subsystem, await own)
    }
  }

  start(): void {
    for (const [subsystem, own] of this.#own) subsystem.start?.(own)
  }

  /** Takes in nothing more. */
  async stop(): Promise<void> {
    this.isStopping = true
    for (const [subsystem, own] of this.#own) await subsystem.stop?.(own)
  }

  /** Ends what answers until the pipeline is drained. */
  async close(): Promise<void> {
    for (const [subsystem, own] of this.#own) await subsystem.close?.(own)
  }

  /** Of those that have one, in the order of the list. */
  states(): readonly Standing[] {
    const { config } = this.loaded()
    return this.#list.flatMap(subsystem =>
      subsystem.state !== undefined && this.#own.has(subsystem)
        ? [{ subsystem, state: subsystem.state(this.#own.get(subsystem), config) }]
        : [],
    )
  }

  pages(): readonly StatusPage<void>[] {
    return this.#list.flatMap(subsystem =>
      (subsystem.pages ?? []).map(page => ({ ...page, read: () => page.read(this.of(subsystem)) })),
    )
  }

  /** Checks of `svc doctor` that need not be tried. */
  known(): ReadonlyMap<string, readonly Finding[]> {
    const all = this.#list.flatMap(subsystem => Object.entries(subsystem.checks?.(this.of(subsystem)) ?? {}))
    return new Map(all.map(([check, finding]) => [check, [finding]]))
  }

  /** Reasons why subsystems do not work, or only in part. */
  faults(): readonly Fault[] {
    return this.states().flatMap(({ state }) => state.faults ?? [])
  }

  #create(subsystem: Subsystem): void {
    const { name, keys = [] } = subsystem
    if (this.#creating.has(subsystem)) throw new Error(`cannot create ${name}: it takes itself`)
    this.#creating.add(subsystem)
    this.#own.set(subsystem, subsystem.create(this))
    if (subsystem.prepare === undefined) return
    this.reloadables.push({
      name,
      prepare: (config, changed) =>
        touches(changed, keys) ? subsystem.prepare!(this.of(subsystem), config, changed) : undefined,
    })
  }
}

/** Declares the metrics of all. `running` is called when a page is written, and not before. */
export function declareMetrics(
  list: readonly Subsystem[],
  namespace: string,
  events: Events,
  running: () => Pick<Running, 'of' | 'faults'>,
): SelfMetrics {
  const metrics = new SelfMetrics(namespace)
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
    const own = () => running().of(subsystem)
    for (const [name, metric] of Object.entries(subsystem.metrics ?? {})) metrics.add(name, metric, own)
    if (subsystem.sync !== undefined) metrics.before(() => subsystem.sync!(own()))
    subsystem.declare?.(metrics, events)
  }
  return metrics
}

function touches(changed: ReadonlySet<string>, branches: readonly string[]): boolean {
  for (const key of changed)
    if (branches.some(branch => key === branch || key.startsWith(`${branch}.`))) return true
  return false
}
