import type { JsonObject } from '../../../../../foundation/lib/json-fields.ts'
import type { TargetGroup } from '../../scrape-job.ts'
import type { MetaLabels } from './meta-labels.ts'

export type Resource = 'pods' | 'services' | 'nodes' | 'endpoints' | 'endpointslices' | 'ingresses'

export type Labels = ReadonlyMap<string, string>

/** Kept data of an API object. */
export interface Watched {
  /** `namespace/name`; the name for an object without a namespace. */
  readonly key: string
}

/** An object that is a group of targets. */
export interface WatchedGroup extends Watched {
  /** Objects joined with it: `pods shop/cart-7`. */
  readonly refs: readonly string[]
  /** Undefined if it is not a target yet. */
  group(joined: Joined): TargetGroup | undefined
}

export interface ContainerPort {
  readonly number: number
  readonly name: string
  readonly protocol: string
}

export interface PodContainer {
  /** Name, image and ID, and whether it is an init container. */
  readonly labels: Labels
  readonly ports: readonly ContainerPort[]
}

/** A pod for joining with endpoints. */
export interface JoinedPod {
  /** '' while it starts, and after it was evicted. */
  readonly ip: string
  /** Labels of every target of this pod. */
  readonly labels: Labels
  readonly containers: readonly PodContainer[]
  /** Labels of one port, without those of the pod. */
  target(container: PodContainer, port: ContainerPort): Map<string, string>
}

/** Objects for joining. Undefined if there is none, or the resource is not watched. */
export interface Joined {
  pod(key: string): JoinedPod | undefined
  service(key: string): Labels | undefined
  /** Name and labels of a node. */
  node(name: string): Labels | undefined
  /** Called if the group with this key has too many targets, and some are omitted. */
  cut(key: string): void
}

export type Read<Kept extends Watched> = (object: JsonObject, meta: MetaLabels) => Kept | undefined

/** A role of `kubernetes_sd_configs`. */
export interface Role {
  readonly resource: Resource
  /** Resources that are joined with it. */
  readonly joins: readonly Resource[]
  /** Whether its objects can be joined with their node. */
  readonly hasNode: boolean
  /** Undefined if it is not such an object. `withNode`: add the labels of its node. */
  read(object: JsonObject, meta: MetaLabels, withNode: boolean): WatchedGroup | undefined
}
