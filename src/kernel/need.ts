import type { Capability } from './capabilities.ts'
import { type Install, installOf } from './install.ts'

/** `unknown`: could not be tried; never shown as missing. `note`: worth knowing, but no problem. */
export type State = 'ok' | 'limited' | 'missing' | 'unknown' | 'note'

/** What users get, by topic of `svc doctor`, in display order. */
export const groups = {
  runtime: { title: 'Runtime', gives: 'a runtime that is tested, secure and small' },
  traces: { title: 'Traces', gives: 'spans and request metrics of every process, through eBPF' },
  processes: { title: 'Processes', gives: 'service names for spans and metrics' },
  profiles: {
    title: 'Profiles',
    gives: 'stacks of every process and of the kernel, with function names',
  },
  kernel: {
    title: 'Kernel counts',
    gives: 'connections and flows, system calls, and process starts and ends, through eBPF',
  },
  host: { title: 'Host metrics', gives: 'metrics of this host, as in the node exporter' },
  discovery: { title: 'Discovery', gives: 'container, pod and cloud names on all telemetry' },
  logs: { title: 'Logs', gives: 'logs of containers, files and the journal' },
  gpu: { title: 'GPUs', gives: 'GPU metrics' },
  scraping: { title: 'Scraping', gives: 'metrics of Prometheus targets' },
  management: { title: 'Management API', gives: 'health, readiness, metrics, status and administration' },
  export: { title: 'Export', gives: 'telemetry at its receiver, over OTLP' },
  configuration: { title: 'Configuration', gives: 'an agent that runs as configured' },
  commands: { title: 'Local commands', gives: 'commands on this host that reach the running agent' },
} as const
export type Topic = keyof typeof groups

/** Kinds of hints, by where the fix is made. */
export const hintKinds = [
  'any',
  'config',
  'systemd',
  'container',
  'kubernetes',
  'sysctl',
  'package',
  'kernel',
] as const
export type HintKind = (typeof hintKinds)[number]

/** Lines to copy: a directive of the unit, options of `docker run`, a field of the pod, a key of the configuration. */
export type Hints = Readonly<Partial<Record<HintKind, string>>>

/** One way in which a need can be unmet. */
export interface Fault {
  readonly state: Exclude<State, 'ok'>
  /** Its meaning, for the reference page; one sentence without its full stop. */
  readonly what: string
  /** The loss, if it differs from the need's. */
  readonly impact?: string
  readonly hints: Hints
}

/** Result of a try: it works, or the fault and the exact observation. */
export type Finding<F extends string = string> =
  | { readonly ok: string }
  | { readonly fault: F; readonly detail: string }

/** Static facts about a need. */
export interface Declaration<F extends string = string> {
  /** Display name, unique. */
  readonly name: string
  readonly group: Topic
  /** Its purpose; one sentence without its full stop. */
  readonly summary: string
  /** What does not work without it, displayed after “Loss:”. */
  readonly impact: string
  /** Capabilities that provide it to an agent that is not root. */
  readonly capabilities?: readonly Capability[]
  readonly faults: Readonly<Record<F, Fault>>
}

/**
 * A feature that a unit requires of this machine. It is tested, not inferred from a version; testing changes nothing.
 */
export interface Need<F extends string = string> extends Declaration<F> {
  readonly try: () => Finding<F>
}

/** Restricts the results of `try` to the declared faults. */
export function need<F extends string>(row: Need<F>): Need<F> {
  return row
}

/** A finding in terms of its need. */
export interface Outcome {
  readonly state: State
  readonly detail: string
  /** Name of the fault in the table; undefined if it works. */
  readonly fault?: string
  /** What does not work without it, for `limited` and `missing`. */
  readonly impact?: string
  readonly hints?: Hints
}

export function outcomeOf(declaration: Declaration, finding: Finding): Outcome {
  if ('ok' in finding) return { state: 'ok', detail: finding.ok }
  const { fault, detail } = finding
  const { state, hints, impact = declaration.impact } = declaration.faults[fault]!
  const costs = state === 'limited' || state === 'missing'
  return { state, detail, fault, ...(costs && { impact }), hints }
}

/** Formats hints as one sentence for a log line or a document: the general hint, and the one for this installation. */
export function hintText(hints: Hints, install: Install = installOf()): string {
  const fitting = install === 'host' ? undefined : hints[install]
  const parts = [hints.any, fitting && `${install}: ${fitting}`].filter(part => part !== undefined)
  return parts.length > 0 ? parts.join('; ') : Object.values(hints).join('; ')
}

/** Hints that grant capabilities. A container's user other than root does not get added ones. */
export function capabilityHints(
  ...names: readonly (Capability | 'NET_BIND_SERVICE' | 'SYS_RESOURCE')[]
): Required<Pick<Hints, 'any' | 'systemd' | 'container' | 'kubernetes'>> {
  return {
    any: `run as root, or with the ${names.length === 1 ? 'capability' : 'capabilities'} ${names.join(' and ')}`,
    systemd: `AmbientCapabilities=${names.map(name => `CAP_${name}`).join(' ')}`,
    container: `docker run --user=0 ${names.map(name => `--cap-add=${name}`).join(' ')}`,
    kubernetes: `securityContext: {runAsUser: 0, capabilities: {add: [${names.join(', ')}]}}`,
  }
}
