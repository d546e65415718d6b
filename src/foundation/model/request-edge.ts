import type { Resource } from './resource.ts'

/**
 * One request, with those of its sides that were seen on this host. Reused: nothing of it may be kept after the call
 * that it is passed to.
 */
export interface RequestEdge {
  /** Who asked and who was asked: of a side that was not seen, its address. */
  readonly client: Resource | string
  readonly server: Resource | string
  /** What was spoken: `http` of any version, `grpc`, else the name of its protocol. */
  readonly protocol: string
  readonly failed: boolean
  /** Nanoseconds; below zero: that side was not seen. */
  readonly clientNs: number
  readonly serverNs: number
  /** The sides' own addresses; empty: that side was not seen. */
  readonly clientAddress: string
  readonly serverAddress: string
  /** Where it was asked. */
  readonly serverPort: number
  /** It asks for health or metrics and nothing else. Found when it is read. */
  readonly probe: boolean
}
