import type { Logger } from '../../../foundation/lib/logger.ts'
import type { Family, Reader } from '../../../foundation/model/collector.ts'
import type { Host } from '../../../foundation/model/host.ts'
import type { Infer, Keys } from '../../../foundation/schema/tree.ts'

export {
  counter,
  type Family,
  gauge,
  NoData,
  type Reader,
  type Readings,
  untyped,
} from '../../../foundation/model/collector.ts'
export type { Host, Tree } from '../../../foundation/model/host.ts'

/** Environment of a collector. */
export interface Env {
  readonly host: Host
  readonly log: Logger
  /** Reason why nothing may be loaded into the kernel; undefined if loading is allowed. */
  readonly withoutEbpf?: string | undefined
}

/**
 * A collector of readings of this host: the unit of this area. Its name is its file, its label `collector` and its key
 * below `agent.nodeexporter.collectors`; its options are keys below `agent.nodeexporter.<name>`.
 */
export interface Collector<K extends Keys = Keys, N extends string = string> {
  readonly name: N
  /** Summary in one line, without a full stop. */
  readonly summary: string
  /** Main source: files, or a service; undefined for several sources. */
  readonly source?: string
  /** Whether it is on by default, as in the replaced exporter (1.12.1). */
  readonly enabledByDefault: boolean
  /** All families with fixed names. */
  readonly metrics: readonly Family[]
  /** Sentence about further families whose names come from the data. */
  readonly dynamic?: string
  readonly options?: K
  /**
   * Option → flag of the replaced exporter, without `--collector.`. An option that is not here has the flag
   * `<name>.<option>` with `-` for `_`; one with '' has no flag.
   */
  readonly flags?: Readonly<Record<string, string>>
  /** Defaults in `svc node-exporter`, if they differ. */
  readonly asOriginal?: { readonly [P in keyof K]?: Infer<K[P]> }
  /** Alternative key of its switch. */
  readonly alias?: string
  /** Starts the collector, without reading yet. Throws an error with a reason for conflicting options. */
  start(options: { readonly [P in keyof K]: Infer<K[P]> }, env: Env): Reader
}

/** Types a unit. */
export function collector<const N extends string, const K extends Keys = Record<never, never>>(
  unit: Collector<K, N>,
): Collector<K, N> {
  return unit
}
