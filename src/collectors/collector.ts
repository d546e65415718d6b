import type { Logger } from '../lib/logger.ts'
import type { Family, Reader } from '../model/collector.ts'
import type { Host } from '../model/host.ts'
import type { Infer, Keys } from '../schema/tree.ts'

export {
  counter,
  type Family,
  gauge,
  NoData,
  type Reader,
  type Readings,
  untyped,
} from '../model/collector.ts'
export type { Host, Tree } from '../model/host.ts'

/** All the world that a collector gets. */
export interface Env {
  readonly host: Host
  readonly log: Logger
  /** Why nothing may be loaded into the kernel; undefined: it may. */
  readonly withoutEbpf?: string | undefined
}

/**
 * A kind of readings of this host: the unit of this area. Its name is its file, its label `collector` and its key below
 * `agent.nodeexporter.collectors`; its options are keys below `agent.nodeexporter.<name>`.
 */
export interface Collector<K extends Keys = Keys, N extends string = string> {
  readonly name: N
  /** What it shows, in one line without a full stop. */
  readonly summary: string
  /** Where it reads most of what it shows: files, or who is asked; undefined where that is many places. */
  readonly source?: string
  /** As in the exporter that the endpoint replaces (1.12.1). */
  readonly enabledByDefault: boolean
  /** All families that it can show by names known beforehand. */
  readonly metrics: readonly Family[]
  /** Which further families it shows, that are named by what it reads: a sentence for the description. */
  readonly dynamic?: string
  readonly options?: K
  /**
   * Option → flag of the exporter that is replaced, without `--collector.`. One that is not here has the flag
   * `<name>.<option>` with `-` for `_`, one that is '' none.
   */
  readonly flags?: Readonly<Record<string, string>>
  /** Defaults in the command that replaces that exporter, where they are others. */
  readonly asOriginal?: { readonly [P in keyof K]?: Infer<K[P]> }
  /** Another key for its switch. */
  readonly alias?: string
  /** Begins work; reads nothing yet. Throws, in words, where the options contradict each other. */
  start(options: { readonly [P in keyof K]: Infer<K[P]> }, env: Env): Reader
}

/** Gives a unit its types. */
export function collector<const N extends string, const K extends Keys = Record<never, never>>(
  unit: Collector<K, N>,
): Collector<K, N> {
  return unit
}
