import { addPort } from './pod.ts'
import type { Joined, JoinedPod, Labels } from './watched.ts'

/**
 * Endpoints that are pods: their targets get what is known of the pod, and ports of its containers that no endpoint names
 * become targets too (Prometheus, kubernetes_sd_config, roles `endpoints` and `endpointslice`).
 */
export class PodJoin {
  private readonly joined: Joined
  private readonly seen = new Map<string, { readonly pod: JoinedPod; readonly ports: Set<number> }>()

  constructor(joined: Joined) {
    this.joined = joined
  }

  /** Completes the target of an endpoint. `port` is undefined where it has none. */
  add(target: Map<string, string>, podKey: string, port: number | undefined): void {
    const pod = this.joined.pod(podKey)
    if (pod === undefined) return
    let seen = this.seen.get(podKey)
    if (seen === undefined) {
      seen = { pod, ports: new Set() }
      this.seen.set(podKey, seen)
    }
    for (const [name, value] of pod.labels) target.set(name, value)
    if (port === undefined) return
    seen.ports.add(port)
    for (const container of pod.containers) {
      const same = container.ports.find(each => each.number === port)
      if (same !== undefined) addPort(target, container, same)
    }
  }

  /** Targets of the ports that were not named. */
  rest(): Labels[] {
    const targets: Labels[] = []
    for (const { pod, ports } of this.seen.values()) {
      if (pod.ip === '') continue
      for (const container of pod.containers)
        for (const port of container.ports) {
          if (ports.has(port.number)) continue
          const target = pod.target(container, port)
          for (const [name, value] of pod.labels) target.set(name, value)
          targets.push(target)
        }
    }
    return targets
  }
}
