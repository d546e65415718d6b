import type { Capability } from './capabilities.ts'
import { type Install, installOf } from './install.ts'

/** `unknown` is what could not be tried: it is never shown as missing. `note` is worth knowing and no problem. */
export type State = 'ok' | 'limited' | 'missing' | 'unknown' | 'note'

/** What users get, by topic of `svc doctor`, in the order in which it is shown. */
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

/** Ways of fixing, by where the hint goes. */
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

/** One way in which a need can be unfulfilled. */
export interface Fault {
  readonly state: Exclude<State, 'ok'>
  /** What it means, for the reference page; one sentence without its full stop. */
  readonly what: string
  /** What it costs, where that differs from the need's own loss. */
  readonly impact?: string
  readonly hints: Hints
}

/** What a try found: it works, or which fault it was and what exactly was seen. */
export type Finding<F extends string = string> =
  | { readonly ok: string }
  | { readonly fault: F; readonly detail: string }

/** What is known of a need without trying it. */
export interface Declaration<F extends string = string> {
  /** In words, and its own. */
  readonly name: string
  readonly group: Topic
  /** What it is for; one sentence without its full stop. */
  readonly summary: string
  /** What does not work without it, to be read after “Loss:”. */
  readonly impact: string
  /** What grants it to an agent that is not root. */
  readonly capabilities?: readonly Capability[]
  readonly faults: Readonly<Record<F, Fault>>
}

/** Something that a unit needs of this machine. It is tried, not guessed from a version; trying changes nothing. */
export interface Need<F extends string = string> extends Declaration<F> {
  readonly try: () => Finding<F>
}

/** Holds the faults that `try` answers to those that are declared. */
export function need<F extends string>(row: Need<F>): Need<F> {
  return row
}

/** A finding in terms of its need. */
export interface Outcome {
  readonly state: State
  readonly detail: string
  /** Name of the fault in the table; undefined when it works. */
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

/** One sentence of hints, for a log line or a document: what helps anywhere, and what fits this installation. */
export function hintText(hints: Hints, install: Install = installOf()): string {
  const fitting = install === 'host' ? undefined : hints[install]
  const parts = [hints.any, fitting && `${install}: ${fitting}`].filter(part => part !== undefined)
  return parts.length > 0 ? parts.join('; ') : Object.values(hints).join('; ')
}

/** Hints that grant capabilities. A container's user other than root gets none of those that are added. */
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
