import type { SignalName } from '../../../view/api/ui/source.ts'

/** What `svc tap` was asked for. */
export interface TapOrder {
  readonly signal: SignalName
  /** Empty: all. */
  readonly service: string
  readonly errors: boolean
  /** 0: however short. */
  readonly minMs: number
  /** Items after which it ends; Infinity: never. */
  readonly most: number
  /** Lines of OTLP JSON. */
  readonly json: boolean
}
