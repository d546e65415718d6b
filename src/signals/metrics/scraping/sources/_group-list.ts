import { isObject } from '../../../../foundation/lib/json-fields.ts'
import type { TargetGroup } from '../scrape-job.ts'
import { maxTargets } from './_target-group-publisher.ts'

const maxGroups = 100_000
const maxLabels = 1_000
const known: ReadonlySet<string> = new Set(['targets', 'labels'])

/** Origin of a list. A remote service must not name sockets of this host. */
export type ListOrigin = 'own' | 'foreign'

/**
 * Parses a group of a list `[{targets: ["host:port"], labels: {name: value}}]` from a file or an HTTP service
 * (Prometheus, file_sd_config and http_sd_config). `name` names the group in the list, `extra` labels are added. Throws
 * an `Error` with a reason if the group is invalid; a list is used as a whole or not at all.
 */
export function readGroup(
  value: unknown,
  at: number,
  name: string,
  extra: ReadonlyMap<string, string>,
  origin: ListOrigin = 'own',
): TargetGroup {
  const where = `group ${at + 1}`
  if (at >= maxGroups) throw new Error(`it has more than ${maxGroups} groups`)
  if (!isObject(value)) throw new Error(`${where} is not an object with "targets"`)
  for (const key of Object.keys(value))
    if (!known.has(key)) throw new Error(`${where} has the unknown key "${key.slice(0, 64)}"`)
  const targets = isNothing(value.targets) ? [] : value.targets
  const labels = isNothing(value.labels) ? {} : value.labels
  if (!Array.isArray(targets)) throw new Error(`"targets" of ${where} is not a list`)
  if (targets.length > maxTargets) throw new Error(`${where} has more than ${maxTargets} targets`)
  const read = targets.map((target, place) => {
    if (typeof target !== 'string') throw new Error(`target ${place + 1} of ${where} is not a string`)
    refuseSocket(target, `target ${place + 1} of ${where}`, origin)
    return new Map([['__address__', target]])
  })
  return { source: name, targets: read, labels: readLabels(labels, where, extra) }
}

/** Includes a key without a value, as YAML reads it (`labels:`). */
function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

function refuseSocket(address: string, what: string, origin: ListOrigin): void {
  if (origin === 'foreign' && address.startsWith('unix:'))
    throw new Error(
      `${what} is a Unix socket; sockets are allowed only in the configuration and files of this host`,
    )
}

function readLabels(
  value: unknown,
  where: string,
  extra: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  if (!isObject(value)) throw new Error(`"labels" of ${where} is not an object`)
  const entries = Object.entries(value)
  if (entries.length > maxLabels) throw new Error(`${where} has more than ${maxLabels} labels`)
  const labels = new Map<string, string>()
  for (const [name, text] of entries) {
    if (name === '') throw new Error(`a label of ${where} has no name`)
    if (typeof text !== 'string') throw new Error(`label "${name.slice(0, 64)}" of ${where} is not a string`)
    labels.set(name, text)
  }
  for (const [name, text] of extra) labels.set(name, text)
  return labels
}
