// The resource of the host metrics, and the start time of their counters.

import { readFileSync } from 'node:fs'
import { arch, hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { Surroundings } from '../../identity/entities/entities.ts'
import { sameAttributes } from '../../identity/entities/same-attributes.ts'

/** `host.arch` of the semantic conventions, where Node's name differs. */
const arches: Readonly<Record<string, string>> = { x64: 'amd64', ia32: 'x86', arm: 'arm32' }

/** A host as described by its own files. */
export interface HostBase extends Resource {
  /** Attributes configured by an operator, which override those of a cloud. */
  readonly added: Attributes
}

/**
 * This host as a resource: conventions for `host` and `os`. `rootfs`: mount point of its root directory. `added`:
 * attributes that an operator wants on everything; those of a service are ignored, because a host is not one.
 */
export function hostResource(rootfs: string, added: Readonly<Record<string, AttributeValue>>): HostBase {
  const attributes = Attributes.of({ 'host.name': hostname(), 'host.arch': arches[arch()] ?? arch() })
  const id = read(join(rootfs, 'etc/machine-id')).trim()
  if (/^[0-9a-f]{32}$/.test(id)) attributes.add('host.id', id)
  attributes.add('os.type', 'linux')
  const release = read(join(rootfs, 'etc/os-release')) || read(join(rootfs, 'usr/lib/os-release'))
  const fields = { 'os.name': 'NAME', 'os.version': 'VERSION_ID', 'os.description': 'PRETTY_NAME' }
  for (const [attribute, field] of Object.entries(fields)) {
    const value = new RegExp(`^${field}=(["']?)(.*)\\1$`, 'm').exec(release)?.[2]
    if (value !== undefined && value !== '') attributes.add(attribute, value)
  }
  const wanted = Attributes.of(
    Object.fromEntries(Object.entries(added).filter(([key]) => !key.startsWith('service.'))),
  )
  for (let i = 0; i < wanted.size; i++) attributes.set(wanted.keys[i]!, wanted.values[i]!)
  return { attributes, added: wanted }
}

/** This host, with the attributes of its cloud: the same resource for as long as none of them changes. */
export class HostEntity {
  readonly #base: HostBase
  readonly #surroundings: () => Surroundings
  #made: { by: Surroundings; readonly resource: Resource } | undefined

  constructor(base: HostBase, surroundings: () => Surroundings) {
    this.#base = base
    this.#surroundings = surroundings
  }

  get resource(): Resource {
    const by = this.#surroundings()
    if (this.#made?.by === by) return this.#made.resource
    const attributes = new Attributes()
    for (const each of [this.#base.attributes, by.attributes, this.#base.added])
      for (let i = 0; i < each.size; i++) attributes.set(each.keys[i]!, each.values[i]!)
    if (this.#made !== undefined && sameAttributes(attributes, this.#made.resource.attributes))
      this.#made.by = by
    else this.#made = { by, resource: { attributes } }
    return this.#made.resource
  }
}

/** Boot time of the host: microseconds since the Unix epoch, from /proc/stat (proc(5)). */
export function bootTimeUs(procfs: string): number {
  const seconds = Number(/^btime (\d+)$/m.exec(read(join(procfs, 'stat')))?.[1])
  return Number.isNaN(seconds) ? Math.round((Date.now() / 1000 - uptime()) * 1e6) : seconds * 1e6
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // not every host has one, and nothing here needs it
  }
}
