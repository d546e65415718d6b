import type { Resource } from '../../foundation/model/resource.ts'
import { commandLine } from './command-line.ts'
import type { ProcessIdentity } from './process-resource.ts'
import type { Verdict } from './selection.ts'

/** Description of a process for display. Unknown texts are ''. */
export interface ProcessDescription {
  readonly pid: number
  /** `service.name`. */
  readonly name: string
  readonly executable: string
  /** With secrets redacted. */
  readonly commandLine: string
  /** User name on the host, or the number: containers have their own users. */
  readonly owner: string
  /** Microseconds since the Unix epoch; 0: unknown. */
  readonly startedUs: number
  readonly runtime: string
  readonly runtimeVersion: string
  readonly containerId: string
  readonly containerName: string
  readonly podName: string
  readonly podNamespace: string
}

/** All data about one process. */
export interface ProcessView extends ProcessDescription {
  /** TCP ports that it listens on, and ports where it was seen to respond. */
  readonly listening: readonly number[]
  readonly served: readonly number[]
  /** Whether a call of it was seen while it was known. */
  readonly seen: boolean
  /** Why it is observed or not; `instrumented`: it is selected, and exports its own spans. */
  readonly selection: Verdict | { readonly observed: false; readonly cause: 'instrumented' }
}

/** `args`: command line. */
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
