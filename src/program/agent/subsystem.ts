// The contract of a subsystem: one feature of the agent. It is enabled by the configuration, and runs, is limited or
// fails without stopping another. subsystems/index.ts lists all; banner, documents, metrics and reload are loops over
// the list.

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
  /** Holds the last records of `log`. */
  readonly logRing: LogRing
  /** Reads the configuration again. */
  readonly load: () => LoadedConfig
  /** Wraps every reload. */
  readonly aroundReload?: <T>(attempt: () => Promise<T>) => Promise<T>
}

/** Events from one subsystem to others that it does not know. */
export class Events {
  /** An export request ended. */
  readonly exported = new Hub<ExportRequest>()
  /** A request between two sides was observed. */
  readonly edges = new Hub<RequestEdge>()
  /** A new container. */
  readonly containers = new Hub<void>()
}

/** The agent as a subsystem sees it. */
export interface Agent {
  readonly options: StartOptions
  /** As at start. */
  readonly config: Config
  /** Contents of the files named by keys, read before any subsystem reads them; available once all are created. */
  readonly contents: Promise<ReadonlyMap<string, string>>
  readonly events: Events
  /** Another subsystem, created on demand. */
  of<Own>(subsystem: Subsystem<Own>): Own
  /** Everything that a reload can change, in order of creation; grows during the start. */
  readonly reloadables: readonly Reloadable[]
}

/** A degradation: reason and hint. */
export interface Fault extends Degradation {
  /** The readiness check that fails; if absent, the agent is still ready. */
  readonly fails?: keyof ReadinessChecks | undefined
}

export type Fact = PipelineLine['nodes'][number]['details'][number]

/** State of a subsystem. Created for every query, so expensive parts are functions. */
export interface State {
  /** `off`: disabled. `none`: enabled, with nothing to do. `failed`: `faults` are the reasons. */
  readonly state: 'ok' | 'off' | 'none' | 'failed'
  /** Summary of its work, or why it is off. */
  readonly detail?: string
  /** How to enable it, or to give it something to do. */
  readonly hint?: string
  /** With `ok` and any of these it is limited. */
  readonly faults?: readonly Fault[]
  /** Why it waits without a fault; '' if it does not. */
  readonly pause?: string
  /** For the graph of the pipeline. */
  readonly facts?: () => readonly Fact[]
  /** Measurements of this host, counted together with those of other subsystems. */
  readonly measures?: () => readonly Fact[]
  /** Items reported so far; `rest`: all that no other source of its signal reported. */
  readonly items?: number | 'rest'
}

/** A place in the graph of the pipeline. */
export interface Source {
  readonly id: string
  readonly name: string
  readonly signal: Signal
  /** States in which it is hidden; if absent, it is always shown. */
  readonly hidden?: readonly ('ok' | 'off')[]
}

/** `Own` is the running part: often an instance, `undefined` if nothing runs. */
export interface Subsystem<Own = unknown> {
  /** For the banner, documents and messages. */
  readonly name: string
  /** Branches of the configuration for which `prepare` is called. */
  readonly keys?: readonly string[]
  /** When it has a line in the banner: always, only while it works, or (if absent) only with faults. */
  readonly banner?: 'always' | 'working'
  readonly source?: Source
  /** Its eBPF part: how it is enabled, and which checks of `svc doctor` test its needs. */
  readonly needs?: KernelPart
  /** By name, without the namespace. */
  readonly metrics?: MetricsOf<Own>
  /** Pages of the management API. */
  readonly pages?: readonly StatusPage<Own>[]

  /**
   * Creates it. `state` reports missing features of the host; a `StartError` ends the start. List a slow one before
   * those that use it.
   */
  create(agent: Agent): Own | Promise<Own>
  /** Starts it, after all are created. */
  start?(own: Own): void
  /** Stops the intake, and emits what is left. */
  stop?(own: Own): void | Promise<void>
  /** Ends it, after the pipeline is drained. */
  close?(own: Own): void | Promise<void>
  state?(own: Own, config: Config): State
  /** Results of checks of `svc doctor`, by name, that follow from the running subsystem. */
  checks?(own: Own): Readonly<Record<string, Finding>>
  /** Updates its counts before metrics are read. */
  sync?(own: Own): void
  /** Declares metrics that are counted by events. */
  declare?(metrics: SelfMetrics, events: Events): void
  /** See `Reloadable`; called if one of `keys` differs. */
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
