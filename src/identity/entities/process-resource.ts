import { createHash } from 'node:crypto'
import type { Owner } from '../../foundation/lib/fair-share.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { Environment } from './process-environment.ts'
import type { ServiceName } from './service-name.ts'
import type { Surroundings } from './surroundings.ts'

/** Whom resources are of, beside the process. */
export interface ResourceOptions {
  /** `host.name` of every resource. */
  readonly hostName: string
  /** `host.id` where no cloud tells it; '' for none. */
  readonly hostId?: string
  /** Tells processes of this boot from those of others with the same numbers. */
  readonly bootId: string
  /** Added to every resource, and stronger than what is found. */
  readonly attributes?: Attributes
  /** `telemetry.sdk.version`: the version of svc. */
  readonly version: string
}

/** What is known of one process for as long as it runs one program. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since boot; -1: not known. */
  readonly start: number
  /** Microseconds since the Unix epoch; 0: not known. */
  readonly startedUs: number
  /** 0: none, or not known. */
  readonly parent: number
  /** The real user; -1: not known. */
  readonly user: number
  /** Its name on this host; '' in containers, which have users of their own. */
  readonly owner: string
  /** Whose share of tables it uses: the unit, container or session that it runs in, and its user there. */
  readonly account: Owner
  /** The kernel's short name of it. */
  readonly comm: string
  /** Path of its executable; '' where it cannot be read. */
  readonly executable: string
  /** The first word of its command line. */
  readonly command: string
  readonly service: ServiceName
  /** Tells this program with its arguments from others. */
  readonly digest: string
  /** Its command line and environment are not known: they may be later. */
  readonly isUnread: boolean
  readonly environment: Environment
  /** '' where it cannot be told. */
  readonly runtimeVersion: string
}

/**
 * Describes a process (semantic conventions, process attributes). The weakest first: its program, what it runs in, its
 * own environment, the operator. Where it runs and which instance it is, its environment cannot say (`mayDeclare`).
 */
export function processResource(
  process: ProcessIdentity,
  surroundings: Surroundings | undefined,
  options: ResourceOptions,
): Resource {
  const { environment } = process
  const { name, runtime, language, given } = process.service
  const attributes = new Attributes()
  attributes.add('service.name', name)
  attributes.add('service.instance.id', instanceId(process, options))
  describeProcess(attributes, process)
  if (runtime !== '') attributes.add('process.runtime.name', runtime)
  if (process.runtimeVersion !== '') attributes.add('process.runtime.version', process.runtimeVersion)
  hostAttributes(attributes, options)
  if (language !== '') attributes.add('telemetry.sdk.language', language)
  addSurroundings(attributes, surroundings)
  if (given) attributes.set('service.name', name)
  for (const [key, value] of environment.attributes) attributes.set(key, value)
  if (environment.serviceName !== '') attributes.set('service.name', environment.serviceName)
  return { ...withAdded(attributes, options), owner: process.account }
}

/** Processes of this host of which nothing is told. */
export function unknownProcess(options: ResourceOptions): Resource {
  const attributes = Attributes.of({ 'service.name': 'unknown_service' })
  hostAttributes(attributes, options)
  return withAdded(attributes, options)
}

/** The host and who tells of it. */
export function hostAttributes(
  attributes: Attributes,
  { hostName, hostId = '', version }: ResourceOptions,
): void {
  attributes.add('host.name', hostName)
  if (hostId !== '') attributes.add('host.id', hostId)
  attributes.add('telemetry.sdk.name', 'svc')
  attributes.add('telemetry.sdk.version', version)
}

/** What a process or container runs in, and what that says of the service. */
export function addSurroundings(attributes: Attributes, surroundings: Surroundings | undefined): void {
  if (surroundings === undefined) return
  setAll(attributes, surroundings.attributes)
  const { name, namespace, version, annotated } = surroundings.service
  if (name !== '') attributes.set('service.name', name)
  if (namespace !== '') attributes.set('service.namespace', namespace)
  if (version !== '') attributes.set('service.version', version)
  for (const [key, value] of annotated) attributes.set(key, value)
}

/** A resource, with what the operator wants on all of them. */
export function withAdded(attributes: Attributes, { attributes: added }: ResourceOptions): Resource {
  if (added !== undefined) setAll(attributes, added)
  return { attributes }
}

function setAll(attributes: Attributes, others: Attributes): void {
  for (let i = 0; i < others.size; i++) attributes.set(others.keys[i]!, others.values[i]!)
}

function describeProcess(attributes: Attributes, process: ProcessIdentity): void {
  const { executable, comm, command } = process
  attributes.add('process.pid', process.pid)
  if (process.parent !== 0) attributes.add('process.parent_pid', process.parent)
  const name = executable.slice(executable.lastIndexOf('/') + 1) || comm
  if (name !== '') attributes.add('process.executable.name', ownText(name, maxNameBytes))
  if (executable.startsWith('/')) attributes.add('process.executable.path', executable)
  if (command !== '') attributes.add('process.command', command)
  if (process.startedUs > 0)
    attributes.add('process.creation.time', new Date(process.startedUs / 1000).toISOString())
  if (process.owner !== '') attributes.add('process.owner', process.owner)
  if (process.user >= 0) attributes.add('process.real_user.id', process.user)
}

/** As long as names of files may be (NAME_MAX). */
const maxNameBytes = 255

/** Namespace of `service.instance.id` (semantic conventions, service attributes). */
const instanceNamespace = Buffer.from('4d63009a8d0f11eeaad74c796ed8e320', 'hex')

/** The same for as long as the process lives, also over restarts of the agent: UUID version 5 of what it is. */
function instanceId({ pid, start }: ProcessIdentity, { hostName, bootId }: ResourceOptions): string {
  const digest = createHash('sha1')
    .update(instanceNamespace)
    .update(`${hostName}/${bootId}/${pid}/${start}`)
    .digest()
  digest[6] = (digest[6]! & 0x0f) | 0x50
  digest[8] = (digest[8]! & 0x3f) | 0x80
  const hex = digest.toString('hex', 0, 16)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
