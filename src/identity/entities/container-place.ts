import { ownText } from '../../foundation/lib/own-text.ts'

/** Where a process runs, as its control group tells. */
export interface ContainerPlace {
  /** 64 hexadecimal digits; '' outside of containers. */
  readonly id: string
  /** '' where the path does not tell. */
  readonly runtime: string
  /** '' outside of pods. */
  readonly podUid: string
  /** The container that this one runs in (Docker in Docker); it is what is told while nobody knows the inner one. */
  readonly outer?: ContainerPlace
}

export const noPlace: ContainerPlace = { id: '', runtime: '', podUid: '' }

/** Containers within each other that are told apart; what lies deeper counts to the last of them. */
const maxNested = 4

/** What container runtimes put before the container's id, and their names (`container.runtime.name`). */
const runtimes: ReadonlyMap<string, string> = new Map([
  ['docker', 'docker'],
  ['cri-containerd', 'containerd'],
  ['nerdctl', 'containerd'],
  ['crio', 'cri-o'],
  ['libpod', 'podman'],
  ['libpod-payload', 'podman'],
])

/**
 * Where a process runs by its /proc/PID/cgroup (cgroups(7)): `hierarchy:controllers:path`, a line for each hierarchy.
 * Of several hierarchies the one that tells most is taken: in a hybrid one, not all have the container's group.
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

/** The same, by the names of a control group and of those above it, the innermost first. */
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

/** Below it users make and name groups as they like: no container there is believed, rootless ones neither. */
const usersSlice = 'user.slice'

/** All containers on a path, the outermost first. */
function containersOf(path: string): Found[] {
  const found: Found[] = []
  let podUid = ''
  let before = ''
  for (const segment of path.split('/')) {
    if (segment === usersSlice) break
    // `SLICE:RUNTIME:ID` is how a runtime that expects systemd names groups without it.
    const parts = segment.split(':', 3)
    podUid = podOf(parts[0]!) || podUid
    const container = parts.length === 3 ? ofPair(parts[1]!, parts[2]!) : ofSegment(segment, before)
    before = segment
    if (container === undefined) continue
    if (container === attendant) return found
    // Within its own group a container's name may stand again (libpod-ID.scope/libpod-payload-ID).
    if (container.id === found.at(-1)?.id) continue
    if (found.length === maxNested) break
    found.push({ ...container, podUid })
    podUid = ''
  }
  if (podUid !== '' && found.length < maxNested) found.push({ id: '', runtime: '', podUid })
  return found
}

/** A process of the runtime itself, which watches over a container and is none. */
const attendant = { id: '', runtime: '' }

function ofPair(runtime: string, id: string): typeof attendant | undefined {
  return isId(id) ? { id, runtime: runtimes.get(runtime) ?? '' } : undefined
}

/** `ID`, `RUNTIME-ID` or `RUNTIME-ID.scope`. */
function ofSegment(segment: string, before: string): typeof attendant | undefined {
  const name = segment.endsWith('.scope') ? segment.slice(0, -'.scope'.length) : segment
  const id = name.slice(-idLength)
  if (!isId(id)) return undefined
  if (name.length === idLength) {
    // The pods of Podman have ids of the same form.
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

/** The uid in `podUID`, `kubepods-burstable-podUID.slice` (with `_`); of a static pod it is the hash of its file. */
function podOf(segment: string): string {
  const name = segment.endsWith('.slice') ? segment.slice(0, -'.slice'.length) : segment
  const at = name.lastIndexOf('pod')
  if (at < 0 || (at > 0 && name[at - 1] !== '-')) return ''
  const uid = name.slice(at + 3)
  return podUids.test(uid) ? uid.replaceAll('_', '-') : ''
}

const podUids = /^([0-9a-f]{8}([-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})$/
