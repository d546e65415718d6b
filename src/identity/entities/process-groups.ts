import { createHash } from 'node:crypto'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { ProcessTable } from './process-table.ts'

/** What tells one process of a group from another. */
const own = new Set([
  'process.pid',
  'process.parent_pid',
  'process.creation.time',
  'process.owner',
  'process.real_user.id',
  'process.command',
  'service.instance.id',
])
const maxGroups = 4_096
/** Of all groups: who starts processes chooses what they are called. */
const maxBytes = 4 * 2 ** 20
/** A group with its names, without its texts, and one text without its characters. */
const groupBytes = 1_024
const textBytes = 24

/**
 * Processes that run the same program as the same service in the same container, as one resource: what the workers of a
 * server, or a thousand short runs of a compiler, have in common. A process that ended before anybody looked is known by
 * its name alone; it counts to the last group that has this name there.
 */
export class ProcessGroups {
  readonly #processes: ProcessTable
  readonly #host: { readonly resource: Resource }
  #groups = new Map<string, Resource>()
  #byResource = new WeakMap<Resource, Resource>()
  /** By `service.name` and container, of processes whose program could be read. */
  #named = new Map<string, Resource>()

  #held = 0
  #kernelGroup: { readonly by: Resource; readonly group: Resource } | undefined

  /** `host`: whom the kernel's own threads count to, as the service `kernel`. */
  constructor(processes: ProcessTable, host: { readonly resource: Resource }) {
    this.#processes = processes
    this.#host = host
  }

  of(pid: number, comm: string): Resource {
    const resource = this.#processes.resource(pid, comm)
    const known = this.#byResource.get(resource)
    if (known !== undefined) return known
    const { attributes } = resource
    const name = `${attributes.get('service.name')}\0${attributes.get('container.id') ?? ''}`
    // Of one that ended before anybody looked, the path may be known and never the command.
    const isRead =
      attributes.get('process.executable.path') !== undefined &&
      attributes.get('process.command') !== undefined
    const group = (isRead ? undefined : this.#named.get(name)) ?? this.#group(attributes)
    if (isRead) this.#named.set(name, group)
    // One that is not read may be known better later.
    if (isRead) this.#byResource.set(resource, group)
    return group
  }

  /** Bytes of memory, about. */
  get bytes(): number {
    return this.#held
  }

  /** Lets go of all groups, and returns what they took: they are made again as they are met, with the same attributes. */
  shed(): number {
    const held = this.#held
    this.#groups = new Map()
    this.#named = new Map()
    this.#byResource = new WeakMap()
    this.#held = 0
    return held
  }

  kernel(): Resource {
    const by = this.#host.resource
    if (this.#kernelGroup?.by !== by) this.#kernelGroup = { by, group: this.#ofKernel(by) }
    return this.#kernelGroup.group
  }

  #ofKernel(host: Resource): Resource {
    const attributes = new Attributes()
    attributes.add('service.name', 'kernel')
    for (let i = 0; i < host.attributes.size; i++)
      attributes.set(host.attributes.keys[i]!, host.attributes.values[i]!)
    attributes.set('service.name', 'kernel')
    return this.#group(attributes)
  }

  #group(of: Attributes): Resource {
    const attributes = new Attributes()
    for (let i = 0; i < of.size; i++) if (!own.has(of.keys[i]!)) attributes.add(of.keys[i]!, of.values[i]!)
    const whole = [attributes.keys.slice(0, attributes.size), attributes.values.slice(0, attributes.size)]
    const id = createHash('sha1').update(JSON.stringify(whole)).digest('base64')
    const known = this.#groups.get(id)
    if (known !== undefined) return known
    const bytes = bytesOf(attributes)
    if (this.#groups.size >= maxGroups || this.#held + bytes > maxBytes) this.shed()
    const made = { attributes }
    this.#groups.set(id, made)
    this.#held += bytes
    return made
  }
}

function bytesOf({ size, keys, values }: Attributes): number {
  let bytes = groupBytes
  for (let i = 0; i < size; i++) bytes += 2 * textBytes + keys[i]!.length + 2 * String(values[i]).length
  return bytes
}
