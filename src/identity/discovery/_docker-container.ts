import { type JsonObject, objectOf, textOf } from '../../foundation/lib/json-fields.ts'
import type { Container } from '../../foundation/model/entity.ts'

/** Form of container IDs of Docker, Podman, CRI-O and the CRI plugin of containerd. */
export const containerId = /^[0-9a-f]{64}$/

/** Maximum number of labels; more labels, and longer ones, are dropped, as images can set any. */
export const maxLabels = 512
const maxLabelChars = 4096
const maxAllLabelChars = 32 * 1024

/**
 * Container from a Docker description: the response of `GET /containers/{id}/json` (Engine API 1.24 and later, also
 * Podman), or the file `config.v2.json`, which has the same field names.
 */
export function dockerContainer(
  id: string,
  runtime: string,
  description: JsonObject,
  logPath: string,
): Container {
  const config = objectOf(description.Config)
  const state = objectOf(description.State)
  const labels = labelsOf(config.Labels)
  return {
    id,
    runtime,
    name: textOf(description.Name).replace(/^\//, ''),
    image: imageName(config.Image),
    imageId: imageId(description.Image),
    labels,
    state: textOf(state.Status) || stateText(state),
    health: healthText(objectOf(state.Health).Status),
    pid: pidOf(state.Pid),
    podUid: podUidOf(labels.get('io.kubernetes.pod.uid') ?? '', description),
    podContainer: labels.get('io.kubernetes.container.name') ?? '',
    logPath,
  }
}

/**
 * The label alone is not proof, as images can set labels. A kubelet also puts the container into the pod's control
 * group (`…/podUID`, `…-podUID.slice` with `_`).
 */
function podUidOf(uid: string, description: JsonObject): string {
  const parent = textOf(objectOf(description.HostConfig).CgroupParent, maxLabelChars).replaceAll('_', '-')
  return uid !== '' && /(^|[/-])pod([^/]{1,128}?)(\.slice)?$/.exec(parent)?.[2] === uid ? uid : ''
}

export function labelsOf(value: unknown): ReadonlyMap<string, string> {
  return boundedLabels(Object.entries(objectOf(value)))
}

export function boundedLabels(entries: Iterable<readonly [string, unknown]>): ReadonlyMap<string, string> {
  const labels = new Map<string, string>()
  let chars = 0
  for (const [name, label] of entries) {
    if (labels.size >= maxLabels) break
    if (typeof label !== 'string' || name.length > maxLabelChars || label.length > maxLabelChars) continue
    if (chars + name.length + label.length > maxAllLabelChars) continue
    chars += name.length + label.length
    labels.set(name, label)
  }
  return labels
}

/** Image name as written by the user; '' for an image started by its ID. */
export function imageName(value: unknown): string {
  const name = textOf(value)
  return /^(sha256:)?[0-9a-f]{64}$/.test(name) ? '' : name
}

/** Image ID with its algorithm prefix, which Podman and CRI-O omit. */
export function imageId(value: unknown): string {
  const digits = textOf(value).replace(/^sha256:/, '')
  return containerId.test(digits) ? `sha256:${digits}` : ''
}

function pidOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0
}

function healthText(value: unknown): string {
  return value === 'starting' || value === 'healthy' || value === 'unhealthy' ? value : ''
}

/** Docker derives a word from the flags in the file in this way (moby, container/state.go, StateString). */
function stateText(state: JsonObject): string {
  if (state.Running === true) {
    if (state.Paused === true) return 'paused'
    return state.Restarting === true ? 'restarting' : 'running'
  }
  if (state.RemovalInProgress === true) return 'removing'
  if (state.Dead === true) return 'dead'
  const started = textOf(state.StartedAt)
  if (started === '') return ''
  return started.startsWith('0001-01-01') ? 'created' : 'exited'
}
