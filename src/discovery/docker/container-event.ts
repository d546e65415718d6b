import { objectOf, parseObject, textOf } from '../../lib/json-fields.ts'
import type { Container } from '../../model/entity.ts'
import { containerId, dockerContainer } from '../_docker-container.ts'

/** Something happened to a container. */
export interface ContainerEvent {
  readonly id: string
  /** It is no more. */
  readonly gone: boolean
  /** What the event tells of it, of an image and a name at most: for one that is gone before anybody can ask. */
  readonly seen: Container
}

/** What changes what there is to tell of a container: Docker's words, and those that Podman has besides. */
const changing = new Set(
  'create init start restart rename update die died stop kill oom pause unpause health_status restore sync'.split(
    ' ',
  ),
)
/** Podman has said `remove` up to version 4. */
const ending = new Set(['destroy', 'remove'])

/** Beside labels, an image and a name, events have these attributes. */
const noLabels = new Set(['oldName', 'exitCode', 'signal', 'containerExitCode', 'podId', 'execDuration'])

/** What a line of `GET /events` tells (Docker Engine API); undefined where it changes nothing, or is no such line. */
export function containerEvent(line: Buffer, runtime: string): ContainerEvent | undefined {
  const event = parseObject(line)
  if (event === undefined || event.Type !== 'container') return undefined
  // As `health_status: healthy`. At each check of the health there are three of `exec_…`, which change nothing.
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
