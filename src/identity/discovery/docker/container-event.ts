import { objectOf, parseObject, textOf } from '../../../foundation/lib/json-fields.ts'
import type { Container } from '../../../foundation/model/entity.ts'
import { containerId, dockerContainer } from '../_docker-container.ts'

/** A change of a container. */
export interface ContainerEvent {
  readonly id: string
  /** The container was removed. */
  readonly gone: boolean
  /** Data in the event, at most an image and a name: for a container that is gone before it can be read. */
  readonly seen: Container
}

/** Actions that change a reported container: those of Docker, and more of Podman. */
const changing = new Set(
  'create init start restart rename update die died stop kill oom pause unpause health_status restore sync'.split(
    ' ',
  ),
)
/** Podman sends `remove` up to version 4. */
const ending = new Set(['destroy', 'remove'])

/** Attributes of events that are not labels, apart from image and name. */
const noLabels = new Set(['oldName', 'exitCode', 'signal', 'containerExitCode', 'podId', 'execDuration'])

/** Event in a line of `GET /events` (Docker Engine API); undefined for a line without a relevant event. */
export function containerEvent(line: Buffer, runtime: string): ContainerEvent | undefined {
  const event = parseObject(line)
  if (event === undefined || event.Type !== 'container') return undefined
  // Such as `health_status: healthy`. Each health check adds three `exec_…` events without a change.
  const action = textOf(event.Action).split(':', 1)[0]!
  const gone = ending.has(action)
  if (!gone && !changing.has(action)) return undefined
  const actor = objectOf(event.Actor)
  const id = textOf(actor.ID)
  if (!containerId.test(id)) return undefined
  const { image: Image, name: Name, ...rest } = objectOf(actor.Attributes)
  const Labels = Object.fromEntries(Object.entries(rest).filter(([key]) => !noLabels.has(key)))
  return { id, gone, seen: dockerContainer(id, runtime, { Name, Config: { Image, Labels } }, '') }
}
