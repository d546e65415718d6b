import { createHash } from 'node:crypto'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { ProcessTable } from './process-table.ts'

/** Attributes that differ between processes of a group. */
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
/** For all groups: users choose the names of their processes. */
const maxBytes = 4 * 2 ** 20
/** A group with attribute names, without texts; and the overhead of a text. */
const groupBytes = 1_024
const textBytes = 24

/**
 * One resource for processes that run the same program as the same service in the same container, such as the workers
 * of a server or a thousand short runs of a compiler. A process that ended before it was read has only a name; it joins
 * the last group of that name in its container.
 */
export class ProcessGroups {
  readonly #processes: ProcessTable
  readonly #host: { readonly resource: Resource }
  #groups = new Map<string, Resource>()
  #byResource = new WeakMap<Resource, Resource>()
  /** Groups of processes whose program was read, by `service.name` and container. */
  #named = new Map<string, Resource>()

  #held = 0
  #kernelGroup: { readonly by: Resource; readonly group: Resource } | undefined

  /** `host`: resource of kernel threads, with the service name `kernel`. */
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
    // A process that ended before it was read may have a path, but never a command.
    const isRead =
      attributes.get('process.executable.path') !== undefined &&
      attributes.get('process.command') !== undefined
    const group = (isRead ? undefined : this.#named.get(name)) ?? this.#group(attributes)
    if (isRead) this.#named.set(name, group)
    // Unread processes may be read later.
    if (isRead) this.#byResource.set(resource, group)
    return group
  }

  /** Approximate memory. */
  get bytes(): number {
    return this.#held
  }

  /** Removes all groups and returns their memory. They are created again on demand, with the same attributes. */
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
