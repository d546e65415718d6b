// Whom the host metrics are of, and since when it counts.

import { readFileSync } from 'node:fs'
import { arch, hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { Attributes, type AttributeValue } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { Surroundings } from '../../identity/entities/entities.ts'
import { sameAttributes } from '../../identity/entities/same-attributes.ts'

/** `host.arch` of the semantic conventions, where Node has another word. */
const arches: Readonly<Record<string, string>> = { x64: 'amd64', ia32: 'x86', arm: 'arm32' }

/** A host by its own files. */
export interface HostBase extends Resource {
  /** Those of its attributes that an operator wants: stronger than what a cloud tells. */
  readonly added: Attributes
}

/**
 * This host as a resource: conventions for `host` and `os`. `rootfs`: where its root directory is. `added`: attributes
 * that an operator wants on everything; what tells of a service is not taken, because a host is none.
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

/** This host, with what its cloud tells of it: the same resource for as long as nothing of that changes. */
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

/** When the host was started: microseconds since the Unix epoch, from /proc/stat (proc(5)). */
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
