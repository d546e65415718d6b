import type { Resource } from './resource.ts'

/**
 * One request, with those of its sides that were seen on this host. Reused: valid only during the call that receives
 * it.
 */
export interface RequestEdge {
  /** Caller and callee: a resource, or the address of a side that was not seen. */
  readonly client: Resource | string
  readonly server: Resource | string
  /** `http` for any version, `grpc`, otherwise the protocol's name. */
  readonly protocol: string
  readonly failed: boolean
  /** Nanoseconds; negative: that side was not seen. */
  readonly clientNs: number
  readonly serverNs: number
  /** The sides' own addresses; '': that side was not seen. */
  readonly clientAddress: string
  readonly serverAddress: string
  /** The port that it was sent to. */
  readonly serverPort: number
  /** A request for health or metrics only. Computed when read. */
  readonly probe: boolean
}
