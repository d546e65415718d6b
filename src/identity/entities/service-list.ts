import type { Resource } from '../../foundation/model/resource.ts'

/** Processes with the same service name. */
export interface Service {
  readonly name: string
  /** '' for none. */
  readonly namespace: string
  /** Number of running processes. */
  readonly instances: number
  /** In ascending order; empty for clients. */
  readonly ports: readonly number[]
}

const maxServices = 1_000
/** Maximum ports of one service. */
const maxPorts = 1_024

/** Groups processes into services by name: at most 1,000, each with at most 1,024 ports. */
export class ServiceList {
  readonly #found = new Map<
    string,
    { name: string; namespace: string; instances: number; ports: Set<number> }
  >()

  add({ attributes }: Resource, ports: readonly number[]): void {
    const name = String(attributes.get('service.name'))
    const namespace = String(attributes.get('service.namespace') ?? '')
    const id = `${name}\0${namespace}`
    const service = this.#found.get(id) ?? { name, namespace, instances: 0, ports: new Set() }
    this.#found.set(id, service)
    service.instances++
    for (const port of ports) service.ports.add(port)
  }

  services(): Service[] {
    return [...this.#found]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, maxServices)
      .map(([, service]) => ({
        ...service,
        ports: [...service.ports].sort((a, b) => a - b).slice(0, maxPorts),
      }))
  }
}
