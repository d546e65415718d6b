import type { Resource } from '../../foundation/model/resource.ts'
import { commandLine } from './command-line.ts'
import type { ProcessIdentity } from './process-resource.ts'

/** What a process is, for people. Texts that are not known are ''. */
export interface ProcessDescription {
  readonly pid: number
  /** `service.name`. */
  readonly name: string
  readonly executable: string
  /** What looks secret in it is hidden. */
  readonly commandLine: string
  /** The user's name, or its number: containers have users of their own. */
  readonly owner: string
  /** Microseconds since the Unix epoch; 0: not known. */
  readonly startedUs: number
  readonly runtime: string
  readonly runtimeVersion: string
  readonly containerId: string
  readonly containerName: string
  readonly podName: string
  readonly podNamespace: string
}

/** What is known of one process. */
export interface ProcessView extends ProcessDescription {
  /** TCP ports that it listens at, and those where it was seen to answer. */
  readonly listening: readonly number[]
  readonly served: readonly number[]
  /** Calls of it were seen since it is known. */
  readonly seen: boolean
  readonly observed: boolean
  readonly reason: string
}

/** `args`: its command line. */
export function describedProcess(
  identity: ProcessIdentity,
  { attributes }: Resource,
  args: readonly string[],
): ProcessDescription {
  const { pid, executable, user, startedUs, runtimeVersion } = identity
  const text = (key: string) => String(attributes.get(key) ?? '')
  return {
    pid,
    name: text('service.name'),
    executable,
    commandLine: commandLine(args),
    owner: identity.owner || (user < 0 ? '' : String(user)),
    startedUs,
    runtime: text('process.runtime.name') || text('telemetry.sdk.language'),
    runtimeVersion,
    containerId: text('container.id'),
    containerName: text('container.name') || text('k8s.container.name'),
    podName: text('k8s.pod.name'),
    podNamespace: text('k8s.namespace.name'),
  }
}
