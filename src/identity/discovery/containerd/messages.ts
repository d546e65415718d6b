// The messages of containerd's API that svc reads and writes (containerd, api/services and api/events, 1.2 to 2.x).

import { type JsonObject, objectOf, parseObject } from '../../../foundation/lib/json-fields.ts'
import { fieldKey, Reader, WireType, Writer } from '../../../foundation/lib/protobuf.ts'
import type { Container } from '../../../foundation/model/entity.ts'
import { boundedLabels, imageId, imageName, maxLabels } from '../_docker-container.ts'
import { containerdContainer } from '../_oci-container.ts'

export const methods = {
  version: '/containerd.services.version.v1.Version/Version',
  namespaces: '/containerd.services.namespaces.v1.Namespaces/List',
  list: '/containerd.services.containers.v1.Containers/ListStream',
  container: '/containerd.services.containers.v1.Containers/Get',
  task: '/containerd.services.tasks.v1.Tasks/Get',
  events: '/containerd.services.events.v1.Events/Subscribe',
} as const

/** Namespaces of Docker, whose API reports its containers: one for containers, one for plugins. */
const dockersNamespaces = new Set(['moby', 'plugins.moby'])
/** Form of valid namespaces (containerd, pkg/identifiers); they become header values. */
const namespaceForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,75}$/
export const maxNamespaces = 256
/** Maximum size of an ID, a name or an image reference. */
const maxTextBytes = 1_024
/** Extension with the metadata of the CRI plugin. */
const criExtension = 'io.cri-containerd.container.metadata'

/** A request with strings in its first field: an ID, filters, or none. */
export function request(...texts: string[]): Uint8Array {
  const out = new Writer(256)
  for (const text of texts) out.string(textKey, text)
  return out.written()
}

const textKey = fieldKey(1, WireType.bytes)

/** Filter for events of containers, without those of processes inside. */
export const eventFilter = 'topic~="^/(containers/|tasks/(start|exit|paused|resumed)$)"'
const changing = new Set(
  ['/containers/create', '/containers/update', '/tasks/start', '/tasks/exit', '/tasks/paused'].concat(
    '/tasks/resumed',
  ),
)
const ending = '/containers/delete'

// All functions below throw a RangeError if the bytes are not a message.

/** Version such as `1.6.20`; '' if not reported. */
export function readVersion(message: Uint8Array): string {
  return textAt(message, 1)
}

/** Namespaces, without those of Docker. */
export function readNamespaces(message: Uint8Array): { readonly names: string[]; readonly leftOut: number } {
  const names: string[] = []
  let leftOut = 0
  eachField(message, (field, value) => {
    const name = field === 1 ? textAt(value, 1) : ''
    if (!isWanted(name)) return
    if (names.length < maxNamespaces) names.push(name)
    else leftOut++
  })
  return { names, leftOut }
}

/** Container ID in a message of the list. */
export function readListedId(message: Uint8Array): string {
  return textAt(bytesAt(message, 1), 1)
}

export interface ContainerdEvent {
  readonly namespace: string
  readonly id: string
  /** The container was removed. */
  readonly gone: boolean
}

/** Event in an envelope; undefined if it does not change a reported container. */
export function readEvent(message: Uint8Array): ContainerdEvent | undefined {
  const namespace = textAt(message, 2)
  const topic = textAt(message, 3)
  const gone = topic === ending
  if (!isWanted(namespace) || (!gone && !changing.has(topic))) return undefined
  const event = bytesAt(bytesAt(message, 4), 2)
  const id = textAt(event, 1)
  // The end of a program started inside, such as a health probe.
  if (topic === '/tasks/exit' && textAt(event, 2) !== id) return undefined
  return { namespace, id, gone }
}

/** State of the main process of a container. */
export interface Task {
  /** As in `Container`. */
  readonly pid: number
  readonly state: string
}

export const noTask: Task = { pid: 0, state: '' }
const states = ['', 'created', 'running', 'stopped', 'paused', 'pausing']

export function readTask(message: Uint8Array): Task {
  let pid = 0
  let status = 0
  eachField(bytesAt(message, 1), nothing, (field, value) => {
    if (field === 3) pid = value
    if (field === 4) status = value
  })
  const state = states[status] ?? ''
  return { pid: state === 'stopped' || pid > 0xffff_ffff ? 0 : pid, state }
}

/** Container from an answer of `Containers/Get` and its task. */
export function readContainer(id: string, message: Uint8Array, { pid, state }: Task): Container {
  let image = ''
  let spec: JsonObject = {}
  let cri: JsonObject = {}
  const pairs: [string, string][] = []
  eachField(bytesAt(message, 1), (field, value) => {
    if (field === 2 && pairs.length < maxLabels)
      pairs.push([textAt(value, 1, maxLabelBytes), textAt(value, 2, maxLabelBytes)])
    if (field === 3) image = textOf(value)
    if (field === 5) spec = objectIn(value)
    if (field === 10 && textAt(value, 1) === criExtension) cri = objectIn(bytesAt(value, 2))
  })
  const base = containerdContainer(id, objectOf(spec.annotations), pid)
  const labels = boundedLabels(pairs)
  return {
    ...base,
    name: base.name || (labels.get('nerdctl/name') ?? ''),
    image: base.image || imageName(image),
    imageId: imageId(objectOf(cri.Metadata).ImageRef),
    labels: labels.size > 0 ? labels : base.labels,
    state,
  }
}

/** A key and its value may have 4,096 bytes together (containerd, pkg/labels). */
const maxLabelBytes = 4_096

function isWanted(namespace: string): boolean {
  return namespaceForm.test(namespace) && !dockersNamespaces.has(namespace)
}

/** JSON object in a google.protobuf.Any. */
function objectIn(any: Uint8Array): JsonObject {
  const value = bytesAt(any, 2)
  return parseObject(Buffer.from(value.buffer, value.byteOffset, value.length)) ?? {}
}

function textAt(message: Uint8Array, wanted: number, mostBytes?: number): string {
  return textOf(bytesAt(message, wanted), mostBytes)
}

/** Text of the bytes; '' if longer than `mostBytes`. */
function textOf(bytes: Uint8Array, mostBytes = maxTextBytes): string {
  if (bytes.length > mostBytes) return ''
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}

/** Last field of this number, as protobuf readers use; empty if missing. */
function bytesAt(message: Uint8Array, wanted: number): Uint8Array {
  let found: Uint8Array = empty
  eachField(message, (field, value) => {
    if (field === wanted) found = value
  })
  return found
}

const empty = new Uint8Array()
const nothing = (): void => undefined

function eachField(
  message: Uint8Array,
  bytes: (field: number, value: Uint8Array) => void,
  number: (field: number, value: number) => void = nothing,
): void {
  const reader = new Reader(message)
  while (reader.next()) {
    if (reader.type === WireType.bytes) bytes(reader.field, reader.bytes())
    else if (reader.type === WireType.varint) number(reader.field, reader.uint())
    else reader.skip()
  }
}
