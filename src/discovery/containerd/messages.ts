// The few messages of containerd's API that are read and written (containerd, api/services and api/events, 1.2 to 2.x).

import { type JsonObject, objectOf, parseObject } from '../../lib/json-fields.ts'
import { fieldKey, Reader, WireType, Writer } from '../../lib/protobuf.ts'
import type { Container } from '../../model/entity.ts'
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

/** Of Docker, which tells of its containers itself: one for containers, one for plugins. */
const dockersNamespaces = new Set(['moby', 'plugins.moby'])
/** As containerd allows them (pkg/identifiers): it goes into a header. */
const namespaceForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,75}$/
const maxNamespaces = 256
/** Of an id, a name, a reference of an image. */
const maxTextBytes = 1_024
/** The part of the CRI keeps here what it knows of a container besides. */
const criExtension = 'io.cri-containerd.container.metadata'

/** A request of texts in its first field: of an id, of filters, of nothing. */
export function request(...texts: string[]): Uint8Array {
  const out = new Writer(256)
  for (const text of texts) out.string(textKey, text)
  return out.written()
}

const textKey = fieldKey(1, WireType.bytes)

/** What happens to containers, without what happens within them. */
export const eventFilter = 'topic~="^/(containers/|tasks/(start|exit|paused|resumed)$)"'
const changing = new Set(
  ['/containers/create', '/containers/update', '/tasks/start', '/tasks/exit', '/tasks/paused'].concat(
    '/tasks/resumed',
  ),
)
const ending = '/containers/delete'

// All below throw a RangeError where the bytes are no message.

/** `1.6.20`; '' where none is told. */
export function readVersion(message: Uint8Array): string {
  return textAt(message, 1)
}

/** Those of others than Docker. */
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

/** The id in a message of the list. */
export function readListedId(message: Uint8Array): string {
  return textAt(bytesAt(message, 1), 1)
}

export interface ContainerdEvent {
  readonly namespace: string
  readonly id: string
  /** It is no more. */
  readonly gone: boolean
}

/** What an envelope tells; undefined where it changes nothing that is told of a container. */
export function readEvent(message: Uint8Array): ContainerdEvent | undefined {
  const namespace = textAt(message, 2)
  const topic = textAt(message, 3)
  const gone = topic === ending
  if (!isWanted(namespace) || (!gone && !changing.has(topic))) return undefined
  const event = bytesAt(bytesAt(message, 4), 2)
  const id = textAt(event, 1)
  // A program that was started within it, as a probe of its health.
  if (topic === '/tasks/exit' && textAt(event, 2) !== id) return undefined
  return { namespace, id, gone }
}

/** How a container runs. */
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

/** What an answer of `Containers/Get` tells of a container, and its task. */
export function readContainer(id: string, message: Uint8Array, { pid, state }: Task): Container {
  let image = ''
  let spec: JsonObject = {}
  let cri: JsonObject = {}
  const told: [string, string][] = []
  eachField(bytesAt(message, 1), (field, value) => {
    if (field === 2 && told.length < maxLabels)
      told.push([textAt(value, 1, maxLabelBytes), textAt(value, 2, maxLabelBytes)])
    if (field === 3) image = textOf(value)
    if (field === 5) spec = objectIn(value)
    if (field === 10 && textAt(value, 1) === criExtension) cri = objectIn(bytesAt(value, 2))
  })
  const base = containerdContainer(id, objectOf(spec.annotations), pid)
  const labels = boundedLabels(told)
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

/** The object in JSON that a google.protobuf.Any holds. */
function objectIn(any: Uint8Array): JsonObject {
  const value = bytesAt(any, 2)
  return parseObject(Buffer.from(value.buffer, value.byteOffset, value.length)) ?? {}
}

function textAt(message: Uint8Array, wanted: number, mostBytes?: number): string {
  return textOf(bytesAt(message, wanted), mostBytes)
}

/** '' where it is longer. */
function textOf(bytes: Uint8Array, mostBytes = maxTextBytes): string {
  if (bytes.length > mostBytes) return ''
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
}

/** The last field of this number, as a reader of protobuf takes it; empty where there is none. */
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
