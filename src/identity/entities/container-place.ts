import { ownText } from '../../foundation/lib/own-text.ts'

/** Where a process runs, by its control group. */
export interface ContainerPlace {
  /** 64 hexadecimal digits; '' outside containers. */
  readonly id: string
  /** '' if the path does not show it. */
  readonly runtime: string
  /** '' outside pods. */
  readonly podUid: string
  /** Container that this one runs in (Docker in Docker); reported while the inner one is unknown. */
  readonly outer?: ContainerPlace
}

export const noPlace: ContainerPlace = { id: '', runtime: '', podUid: '' }

/** Maximum nested containers; deeper ones count as the last of these. */
const maxNested = 4

/** Prefixes that runtimes put before the container id, and the runtime's name (`container.runtime.name`). */
const runtimes: ReadonlyMap<string, string> = new Map([
  ['docker', 'docker'],
  ['cri-containerd', 'containerd'],
  ['nerdctl', 'containerd'],
  ['crio', 'cri-o'],
  ['libpod', 'podman'],
  ['libpod-payload', 'podman'],
])

/**
 * Parses /proc/PID/cgroup (cgroups(7)), one line `hierarchy:controllers:path` per hierarchy. The most detailed line
 * wins: with hybrid hierarchies, not all contain the container's group.
 */
export function placeOf(cgroupFile: string): ContainerPlace {
  let found: readonly Found[] = []
  for (const line of cgroupFile.split('\n')) {
    const path = line.indexOf('/')
    if (path < 0) continue
    const containers = containersOf(line.slice(path))
    if (weight(containers) > weight(found)) found = containers
  }
  return found.reduce<ContainerPlace | undefined>(within, undefined) ?? noPlace
}

/** The same from the names of a control group and its parents, innermost first. */
export function placeOfNames(names: readonly string[]): ContainerPlace {
  return placeOf(`/${names.toReversed().join('/')}`)
}

type Found = Omit<ContainerPlace, 'outer'>

function weight(containers: readonly Found[]): number {
  return containers.reduce((sum, { id, podUid }) => sum + (id === '' ? 0 : 2) + (podUid === '' ? 0 : 1), 0)
}

function within(outer: ContainerPlace | undefined, { id, runtime, podUid }: Found): ContainerPlace {
  const inner = { id: ownText(id, idLength), runtime, podUid: ownText(podUid, idLength) }
  return outer === undefined ? inner : { ...inner, outer }
}

/** Users create and name groups below this slice, so containers there are ignored, including rootless ones. */
const usersSlice = 'user.slice'

/** All containers on a path, outermost first. */
function containersOf(path: string): Found[] {
  const found: Found[] = []
  let podUid = ''
  let before = ''
  for (const segment of path.split('/')) {
    if (segment === usersSlice) break
    // A runtime configured for systemd names groups `SLICE:RUNTIME:ID` when systemd is missing.
    const parts = segment.split(':', 3)
    podUid = podOf(parts[0]!) || podUid
    const container = parts.length === 3 ? ofPair(parts[1]!, parts[2]!) : ofSegment(segment, before)
    before = segment
    if (container === undefined) continue
    if (container === attendant) return found
    // A container's own group may contain its name again (libpod-ID.scope/libpod-payload-ID).
    if (container.id === found.at(-1)?.id) continue
    if (found.length === maxNested) break
    found.push({ ...container, podUid })
    podUid = ''
  }
  if (podUid !== '' && found.length < maxNested) found.push({ id: '', runtime: '', podUid })
  return found
}

/** A process of the runtime that supervises a container. */
const attendant = { id: '', runtime: '' }

function ofPair(runtime: string, id: string): typeof attendant | undefined {
  return isId(id) ? { id, runtime: runtimes.get(runtime) ?? '' } : undefined
}

/** Parses `ID`, `RUNTIME-ID` or `RUNTIME-ID.scope`. */
function ofSegment(segment: string, before: string): typeof attendant | undefined {
  const name = segment.endsWith('.scope') ? segment.slice(0, -'.scope'.length) : segment
  const id = name.slice(-idLength)
  if (!isId(id)) return undefined
  if (name.length === idLength) {
    // Podman's pods have ids of the same form.
    if (before === 'libpod_parent') return undefined
    return { id, runtime: before === 'docker' ? 'docker' : '' }
  }
  const prefix = name.slice(0, -idLength)
  if (!prefix.endsWith('-')) return undefined
  if (prefix.endsWith('conmon-')) return attendant
  return { id, runtime: runtimes.get(prefix.slice(0, -1)) ?? '' }
}

const idLength = 64

function isId(text: string): boolean {
  return text.length === idLength && /^[0-9a-f]+$/.test(text)
}

/** Uid from `podUID` or `kubepods-burstable-podUID.slice` (with `_`); for a static pod, the hash of its manifest. */
function podOf(segment: string): string {
  const name = segment.endsWith('.slice') ? segment.slice(0, -'.slice'.length) : segment
  const at = name.lastIndexOf('pod')
  if (at < 0 || (at > 0 && name[at - 1] !== '-')) return ''
  const uid = name.slice(at + 3)
  return podUids.test(uid) ? uid.replaceAll('_', '-') : ''
}

const podUids = /^([0-9a-f]{8}([-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})$/
