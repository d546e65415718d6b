import { createHash } from 'node:crypto'
import { hostname } from 'node:os'

/** Share of targets for an agent: it is `index` of `count` agents, and each target is scraped by `replicas` of them. */
export interface Shard {
  /** From 0. */
  readonly index: number
  readonly count: number
  readonly replicas: number
}

/**
 * Whether an agent scrapes the target (rendezvous hashing: Thaler and Ravishankar, 1996). Agents need no communication:
 * each one compares its own weight with all others. If n agents become one more, the new one takes 1/(n+1) of the
 * targets, and no other target moves.
 */
export function shardOf({ index, count, replicas }: Shard, id: string): boolean {
  if (count <= replicas) return index < count
  const target = hashOf(id)
  const own = weight(target, index)
  let ahead = 0
  for (let other = 0; other < count; other++) {
    if (other === index) continue
    const theirs = weight(target, other)
    if (theirs > own || (theirs === own && other < index)) ahead++
    if (ahead >= replicas) return false
  }
  return index < count
}

interface Hash {
  readonly high: number
  readonly low: number
}

function hashOf(id: string): Hash {
  const bytes = createHash('sha256').update(id).digest()
  return { high: bytes.readUInt32BE(0), low: bytes.readUInt32BE(4) }
}

/** Well-mixed 32-bit hash of a target and an agent: the finalizer of MurmurHash3 over each half. */
function weight({ high, low }: Hash, index: number): number {
  return mixed(mixed((index + 1) ^ high) ^ low)
}

function mixed(of: number): number {
  let hash = of
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/**
 * Shard index: the number itself, or for -1 that of this agent's pod in a StatefulSet, whose names end in `-0`, `-1`
 * and so on (Kubernetes, "Ordinal index"). Undefined if neither `POD_NAME` nor the host name has one.
 */
export function shardIndex(
  written: number,
  podName: string | undefined = process.env.POD_NAME,
  host: string = hostname(),
): number | undefined {
  return written >= 0 ? written : (ordinalOf(podName ?? '') ?? ordinalOf(host))
}

/** A host name may be followed by a domain. */
function ordinalOf(name: string): number | undefined {
  const ordinal = /^[^.]*-(\d{1,6})(?:\.|$)/.exec(name)?.[1]
  return ordinal === undefined ? undefined : Number(ordinal)
}
