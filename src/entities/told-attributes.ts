import { ownText } from '../lib/own-text.ts'

/** What somebody names a service with: a process in its environment, or who annotates a pod. */
export type ToldAttributes = readonly (readonly [key: string, value: string])[]

/** Attributes that were told and are not taken, by why. */
export interface ToldLosses {
  /** They would say where the process runs, or which instance it is. */
  reserved: number
  /** More than one process may name, or than all together. */
  too_many: number
  /** The end of a key or value. */
  too_long: number
}

export type ToldLoss = keyof ToldLosses

/** Of one process or pod. */
const maxAttributes = 32
const maxKeyBytes = 128
export const maxToldBytes = 256
const maxAllBytes = 4_096

/**
 * First words of keys that the kernel, a runtime, an orchestrator, a cloud or svc itself answers for (semantic
 * conventions, resource attributes). Whoever may start a process must not be able to pose as another host or pod.
 */
const reserved = new Set(
  `host hostname os system hw device machine container docker podman oci k8s kube kubernetes openshift pod node cluster
  cloud cloudfoundry aws gcp azure alibaba digitalocean heroku oracle faas process thread telemetry otel svc`.split(
    /\s+/,
  ),
)

/**
 * Whether a process must not name it. As receivers fold keys (`host.name`, `host_name`, `Host-Name` are one label to
 * Prometheus), so does this. What a service is called is the process's own to say, which of its instances is not.
 */
export function isReserved(key: string): boolean {
  const words = key
    .toLowerCase()
    .split(/[^a-z0-9]+/, 5)
    .filter(word => word !== '')
  const [first = '', second = '', third = ''] = words
  if (first === 'service') return second === 'instance' && (third === 'id' || third === '')
  return first === '' || reserved.has(first)
}

/** What may be taken of that, each and all within their bounds; `lost` counts the rest. */
export function taken(told: ToldAttributes, lost: (why: ToldLoss) => void): ToldAttributes {
  const kept: (readonly [string, string])[] = []
  let bytes = 0
  // What names the service comes first, wherever it stands.
  for (const pass of [true, false])
    for (const [key, value] of told) {
      if (/^(service|deployment)\./.test(key) !== pass) continue
      const length = Buffer.byteLength(key)
      if (isReserved(key)) lost('reserved')
      else if (length > maxKeyBytes) lost('too_long')
      else if (kept.length >= maxAttributes || bytes + length >= maxAllBytes) lost('too_many')
      else {
        const own = ownText(value, Math.min(maxToldBytes, maxAllBytes - bytes - length))
        if (own.length < value.length) lost('too_long')
        bytes += length + Buffer.byteLength(own)
        kept.push([ownText(key, maxKeyBytes), own])
      }
    }
  return kept
}
