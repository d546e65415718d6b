import { addPort } from './pod.ts'
import type { ContainerPort, Joined, JoinedPod, Labels, PodContainer } from './watched.ts'

/**
 * Maximum labels of all targets of one object. Addresses, ports and labels multiply, and a user with access to one
 * namespace can create such an object.
 */
const maxLabels = 1_000_000

interface Seen {
  readonly pod: JoinedPod
  /** Ports of the pod that are named by an endpoint. */
  readonly named: Set<number>
  /** First port with each number in each container. */
  readonly byNumber: ReadonlyMap<number, readonly { container: PodContainer; port: ContainerPort }[]>
}

/**
 * Targets of endpoints. Those that are pods get the labels of the pod, and container ports that no endpoint names
 * become targets too (Prometheus, kubernetes_sd_config, roles `endpoints` and `endpointslice`).
 */
export class PodJoin {
  readonly #joined: Joined
  readonly #targets: Labels[] = []
  readonly #seen = new Map<string, Seen>()
  #labels = 0

  constructor(joined: Joined) {
    this.#joined = joined
  }

  /** Whether there is no room for more. */
  get isFull(): boolean {
    return this.#labels >= maxLabels
  }

  /** Adds the target of an endpoint. `podKey` is '' if it is not a pod, `port` undefined for no port. */
  add(target: Map<string, string>, podKey: string, port: number | undefined): void {
    const seen = podKey === '' ? undefined : this.#see(podKey)
    if (seen !== undefined) {
      for (const [name, value] of seen.pod.labels) target.set(name, value)
      if (port !== undefined) {
        seen.named.add(port)
        for (const each of seen.byNumber.get(port) ?? []) addPort(target, each.container, each.port)
      }
    }
    this.#push(target)
  }

  /** All targets, including those of the remaining ports. `key` is that of the object. */
  all(key: string): readonly Labels[] {
    for (const { pod, named } of this.#seen.values()) {
      if (pod.ip === '') continue
      for (const container of pod.containers)
        for (const port of container.ports) {
          if (this.isFull) break
          if (named.has(port.number)) continue
          const target = pod.target(container, port)
          for (const [name, value] of pod.labels) target.set(name, value)
          this.#push(target)
        }
    }
    if (this.isFull) this.#joined.cut(key)
    return this.#targets
  }

  #push(target: Labels): void {
    this.#labels += target.size
    this.#targets.push(target)
  }

  #see(podKey: string): Seen | undefined {
    const known = this.#seen.get(podKey)
    if (known !== undefined) return known
    const pod = this.#joined.pod(podKey)
    if (pod === undefined) return undefined
    const byNumber = new Map<number, { container: PodContainer; port: ContainerPort }[]>()
    for (const container of pod.containers)
      for (const port of container.ports) {
        const same = byNumber.get(port.number)
        if (same === undefined) byNumber.set(port.number, [{ container, port }])
        else if (same.at(-1)!.container !== container) same.push({ container, port })
      }
    const seen = { pod, named: new Set<number>(), byNumber }
    this.#seen.set(podKey, seen)
    return seen
  }
}
