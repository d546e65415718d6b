// The contract of a subsystem: one feature of the agent. The configuration asks for it, and it runs, is limited or fails
// without stopping another. subsystems/index.ts lists all; banner, documents, metrics and reload are loops over the list.

import type { Config, LoadedConfig } from '../../config/index.ts'
import type { Change } from '../../foundation/lib/change.ts'
import { Hub } from '../../foundation/lib/hub.ts'
import type { LogRing } from '../../foundation/lib/log-ring.ts'
import type { Logger } from '../../foundation/lib/logger.ts'
import type { RequestEdge } from '../../foundation/model/request-edge.ts'
import type { Signal } from '../../foundation/model/signal.ts'
import type { Finding } from '../../kernel/need.ts'
import type { ExportRequest } from '../../pipeline/send-loop.ts'
import type { StatusPage } from '../../view/api/status-page.ts'
import type { Degradation, ReadinessChecks } from '../../view/api/types.ts'
import type { PipelineLine } from '../../view/api/ui/documents.ts'
import type { KernelPart } from './kernel-parts.ts'
import type { Reloadable } from './reload.ts'
import type { MetricsOf, SelfMetrics } from './self-metrics.ts'

export interface StartOptions {
  readonly loaded: LoadedConfig
  readonly log: Logger
  /** Where `log` keeps its last records. */
  readonly logRing: LogRing
  /** Reads the configuration again. */
  readonly load: () => LoadedConfig
  /** Runs every reload, whatever asked for it. */
  readonly aroundReload?: <T>(attempt: () => Promise<T>) => Promise<T>
}

/** Reports of one subsystem to others that it does not know. */
export class Events {
  /** An export request ended. */
  readonly exported = new Hub<ExportRequest>()
  /** A request between two sides was seen. */
  readonly edges = new Hub<RequestEdge>()
  /** A container is new. */
  readonly containers = new Hub<void>()
}

/** The agent as a subsystem sees it. */
export interface Agent {
  readonly options: StartOptions
  /** As of the start. */
  readonly config: Config
  /** Contents of the files that keys name, as of before any subsystem read them; there once all are created. */
  readonly contents: Promise<ReadonlyMap<string, string>>
  readonly events: Events
  /** Another subsystem; it is created first. */
  of<Own>(subsystem: Subsystem<Own>): Own
  /** All that a reload can change, in the order of creation; grows while the agent starts. */
  readonly reloadables: readonly Reloadable[]
}

/** Less than was asked for: why, and what to do. */
export interface Fault extends Degradation {
  /** The check of readiness that fails; left out: the agent is ready all the same. */
  readonly fails?: keyof ReadinessChecks | undefined
}

export type Fact = PipelineLine['nodes'][number]['details'][number]

/** How a subsystem is. Made whenever something looks, so what is costly is a function. */
export interface State {
  /** `off`: not asked for. `none`: asked for, and there is nothing to do. `failed`: `faults` say why it does not run. */
  readonly state: 'ok' | 'off' | 'none' | 'failed'
  /** Its work, or why it is off. */
  readonly detail?: string
  /** How to enable it, or to give it something to do. */
  readonly hint?: string
  /** With these and `ok` it is limited. */
  readonly faults?: readonly Fault[]
  /** Why it waits though nothing is wrong; '' where it does not. */
  readonly pause?: string
  /** For the graph of the pipeline. */
  readonly facts?: () => readonly Fact[]
  /** Measurements of this host, which are counted together with those of others. */
  readonly measures?: () => readonly Fact[]
  /** Items that it has reported; `rest`: those that no other source of its signal has. */
  readonly items?: number | 'rest'
}

/** A place in the graph of the pipeline. */
export interface Source {
  readonly id: string
  readonly name: string
  readonly signal: Signal
  /** States in which it is not shown; left out: it always is. */
  readonly hidden?: readonly ('ok' | 'off')[]
}

/** `Own` is what runs: often an instance, `undefined` where nothing does. */
export interface Subsystem<Own = unknown> {
  /** In the banner, in documents and in messages. */
  readonly name: string
  /** Branches of the configuration that a reload changes; for `prepare`. */
  readonly keys?: readonly string[]
  /** When it has a line in the banner: always, only while it works, or (left out) only for its faults. */
  readonly banner?: 'always' | 'working'
  readonly source?: Source
  /** The part of eBPF that it is: how it is asked for, and which checks of `svc doctor` try its needs. */
  readonly needs?: KernelPart
  /** By name, without the namespace. */
  readonly metrics?: MetricsOf<Own>
  /** Pages of the management API. */
  readonly pages?: readonly StatusPage<Own>[]

  /**
   * Makes it. `state` reports what this host lacks; a `StartError` ends the start. One that takes time stands in the list
   * before those that take it.
   */
  create(agent: Agent): Own | Promise<Own>
  /** Begins, when all are created. */
  start?(own: Own): void
  /** Takes in nothing more, and hands on what it has. */
  stop?(own: Own): void | Promise<void>
  /** Ends, when the pipeline is drained. */
  close?(own: Own): void | Promise<void>
  state?(own: Own, config: Config): State
  /** Results of checks of `svc doctor`, by name, that follow from the running subsystem. */
  checks?(own: Own): Readonly<Record<string, Finding>>
  /** Brings its counts up to date, before metrics are read. */
  sync?(own: Own): void
  /** Declares metrics that are counted by events. */
  declare?(metrics: SelfMetrics, events: Events): void
  /** See `Reloadable`; called where one of `keys` differs. */
  prepare?(
    own: Own,
    config: Config,
    changed: ReadonlySet<string>,
  ): Change | undefined | Promise<Change | undefined>
}

/** A subsystem with its state. */
export interface SubsystemState {
  readonly subsystem: Subsystem
  readonly state: State
}

/** Reasons why subsystems do not work, or only in part. */
export function faultsOf(states: readonly SubsystemState[]): readonly Fault[] {
  return states.flatMap(({ state }) => state.faults ?? [])
}

export function fact(name: string, value: string | number): Fact {
  return { name, value: typeof value === 'number' ? value.toLocaleString('en-US') : value }
}
