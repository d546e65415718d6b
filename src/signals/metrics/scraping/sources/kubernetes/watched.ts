import type { JsonObject } from '../../../../../foundation/lib/json-fields.ts'
import type { TargetGroup } from '../../scrape-job.ts'
import type { MetaLabels } from './meta-labels.ts'

export type Resource = 'pods' | 'services' | 'nodes' | 'endpoints' | 'endpointslices' | 'ingresses'

export type Labels = ReadonlyMap<string, string>

/** What is kept of an object of the API. */
export interface Watched {
  /** `namespace/name`; of an object without a namespace its name. */
  readonly key: string
}

/** One that is a group of targets. */
export interface WatchedGroup extends Watched {
  /** The objects that go into its labels too: `pods shop/cart-7`. */
  readonly refs: readonly string[]
  /** Undefined: it is no target yet. */
  group(joined: Joined): TargetGroup | undefined
}

export interface ContainerPort {
  readonly number: number
  readonly name: string
  readonly protocol: string
}

export interface PodContainer {
  /** Its name, image and number, and whether it is one that runs before the others. */
  readonly labels: Labels
  readonly ports: readonly ContainerPort[]
}

/** A pod as endpoints are joined with it. */
export interface JoinedPod {
  /** '' while it starts, and after it was evicted. */
  readonly ip: string
  /** Of every target that is this pod. */
  readonly labels: Labels
  readonly containers: readonly PodContainer[]
  /** Of one port, without the labels of the pod. */
  target(container: PodContainer, port: ContainerPort): Map<string, string>
}

/** Objects that others are joined with. Undefined: there is none, or nobody asked for them. */
export interface Joined {
  pod(key: string): JoinedPod | undefined
  service(key: string): Labels | undefined
  /** Its name and labels. */
  node(name: string): Labels | undefined
  /** The group of that key has more targets than are good, of which some were left out. */
  cut(key: string): void
}

export type Read<Kept extends Watched> = (object: JsonObject, meta: MetaLabels) => Kept | undefined

/** A role of `kubernetes_sd_configs`. */
export interface Role {
  readonly resource: Resource
  /** What is watched beside it. */
  readonly joins: readonly Resource[]
  /** Whether it can be joined with the node that it is on. */
  readonly hasNode: boolean
  /** Undefined: this is no such object. `withNode`: its labels are to have those of the node. */
  read(object: JsonObject, meta: MetaLabels, withNode: boolean): WatchedGroup | undefined
}
