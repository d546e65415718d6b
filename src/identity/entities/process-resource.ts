import { createHash } from 'node:crypto'
import type { Owner } from '../../foundation/lib/fair-share.ts'
import { ownText } from '../../foundation/lib/own-text.ts'
import { Attributes } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import type { Environment } from './process-environment.ts'
import type { ServiceName } from './service-name.ts'
import type { Surroundings } from './surroundings.ts'

/** Host and agent of the resources. */
export interface ResourceOptions {
  /** `host.name` of every resource. */
  readonly hostName: string
  /** `host.id` if no cloud provides one; '' for none. */
  readonly hostId?: string
  /** Distinguishes processes of this boot from those of other boots with the same numbers. */
  readonly bootId: string
  /** Added to every resource; these override detected attributes. */
  readonly attributes?: Attributes
  /** `telemetry.sdk.version`: the version of svc. */
  readonly version: string
}

/** Identity of one process while it runs one program. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since boot; -1: unknown. */
  readonly start: number
  /** Microseconds since the Unix epoch; 0: unknown. */
  readonly startedUs: number
  /** 0: none or unknown. */
  readonly parent: number
  /** Real user; -1: unknown. */
  readonly user: number
  /** User name on this host; '' in containers, which have their own users. */
  readonly owner: string
  /** Owner for shares of tables: the unit, container or session, and the user in it. */
  readonly account: Owner
  /** The kernel's short name. */
  readonly comm: string
  /** Path of the executable; '' if not readable. */
  readonly executable: string
  /** First word of the command line. */
  readonly command: string
  readonly service: ServiceName
  /** Identifies the program with its arguments. */
  readonly digest: string
  /** Command line and environment could not be read; they may be later. */
  readonly isUnread: boolean
  readonly environment: Environment
  /** '' if unknown. */
  readonly runtimeVersion: string
}

/**
 * Resource of a process (semantic conventions, process attributes). Sources in ascending priority: program,
 * surroundings, environment, configuration. The environment cannot set where the process runs, or which instance it is
 * (`mayDeclare`).
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

/** Resource for processes of this host without any data. */
export function unknownProcess(options: ResourceOptions): Resource {
  const attributes = Attributes.of({ 'service.name': 'unknown_service' })
  hostAttributes(attributes, options)
  return withAdded(attributes, options)
}

/** Attributes of the host and of svc. */
export function hostAttributes(
  attributes: Attributes,
  { hostName, hostId = '', version }: ResourceOptions,
): void {
  attributes.add('host.name', hostName)
  if (hostId !== '') attributes.add('host.id', hostId)
  attributes.add('telemetry.sdk.name', 'svc')
  attributes.add('telemetry.sdk.version', version)
}

/** Adds attributes of the surroundings, and the service name that they define. */
export function addSurroundings(attributes: Attributes, surroundings: Surroundings | undefined): void {
  if (surroundings === undefined) return
  setAll(attributes, surroundings.attributes)
  const { name, namespace, version, annotated } = surroundings.service
  if (name !== '') attributes.set('service.name', name)
  if (namespace !== '') attributes.set('service.namespace', namespace)
  if (version !== '') attributes.set('service.version', version)
  for (const [key, value] of annotated) attributes.set(key, value)
}

/** Resource with the configured attributes. */
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

/** Maximum length of a file name (NAME_MAX). */
const maxNameBytes = 255

/** Namespace of `service.instance.id` (semantic conventions, service attributes). */
const instanceNamespace = Buffer.from('4d63009a8d0f11eeaad74c796ed8e320', 'hex')

/** Stable for the life of the process, also across agent restarts: UUID version 5 of its identity. */
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
