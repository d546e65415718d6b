import type { SignalName } from '../../../view/api/ui/source.ts'

/** Options of `svc tap`. */
export interface TapOrder {
  readonly signal: SignalName
  /** Empty: all. */
  readonly service: string
  readonly errors: boolean
  /** 0: any duration. */
  readonly minMs: number
  /** Number of items after which it ends; Infinity: never. */
  readonly most: number
  /** Print lines of OTLP JSON. */
  readonly json: boolean
}
