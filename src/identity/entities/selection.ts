/** Inclusive range of ports. */
export interface PortRange {
  readonly from: number
  readonly to: number
}

/** Criteria for processes; all that are set must match. Texts may contain `*`. */
export interface ProcessSelector {
  /** Listening ports, of which one must match. Empty: any. */
  readonly ports: readonly PortRange[]
  /** '' for any. */
  readonly executable: string
  /** `service.name`; '' for any. */
  readonly name: string
  /** Surroundings; '' for any. A process outside a cluster matches only if all are ''. */
  readonly namespace: string
  readonly podName: string
  readonly deploymentName: string
  readonly daemonsetName: string
  readonly statefulsetName: string
  readonly containerName: string
  /** Labels of the pod; values may contain `*`, and '' matches any. */
  readonly podLabels: ReadonlyMap<string, string>
}

/** Process to match against selectors. */
export interface SelectableProcess {
  readonly name: string
  readonly executable: string
  /** Called only if a selector has ports. */
  listening(): readonly number[]
  /** Attribute of its resource; '' if missing. */
  attribute(key: string): string
  /** Undefined if the pod lacks the label, or there is no pod. */
  podLabel(key: string): string | undefined
}

export interface SelectionRules {
  /** Empty: all processes. */
  readonly instrument: readonly ProcessSelector[]
  /** Overrides `instrument`. */
  readonly exclude: readonly ProcessSelector[]
}

/** Whether a process is observed, and why; `entry` is the index of the first entry that matches. */
export type Verdict =
  | { readonly observed: true; readonly cause: 'no_rules' }
  | { readonly observed: true; readonly cause: 'instrument'; readonly entry: number }
  | { readonly observed: false; readonly cause: 'exclude'; readonly entry: number }
  | { readonly observed: false; readonly cause: 'no_entry' }

const everything: Verdict = { observed: true, cause: 'no_rules' }

/** Decides which processes are observed (`discovery.instrument` and `discovery.exclude`). */
export function judge(rules: SelectionRules, process: SelectableProcess): Verdict {
  const excluded = rules.exclude.findIndex(selector => means(selector, process))
  if (excluded >= 0) return { observed: false, cause: 'exclude', entry: excluded }
  if (rules.instrument.length === 0) return everything
  const wanted = rules.instrument.findIndex(selector => means(selector, process))
  return wanted >= 0
    ? { observed: true, cause: 'instrument', entry: wanted }
    : { observed: false, cause: 'no_entry' }
}

function means(selector: ProcessSelector, process: SelectableProcess): boolean {
  return (
    matches(selector.name, process.name) &&
    matches(selector.executable, process.executable) &&
    runsIn(selector, process) &&
    (selector.ports.length === 0 || process.listening().some(port => within(selector.ports, port)))
  )
}

/** Resource attributes for each field of a selector (semantic conventions, Kubernetes). */
const places = [
  ['namespace', 'k8s.namespace.name'],
  ['podName', 'k8s.pod.name'],
  ['deploymentName', 'k8s.deployment.name'],
  ['daemonsetName', 'k8s.daemonset.name'],
  ['statefulsetName', 'k8s.statefulset.name'],
  ['containerName', 'k8s.container.name'],
] as const

function runsIn(selector: ProcessSelector, process: SelectableProcess): boolean {
  for (const [part, key] of places) {
    const pattern = selector[part]
    if (pattern === '') continue
    const value = process.attribute(key)
    if (value === '' || !matches(pattern, value)) return false
  }
  for (const [key, pattern] of selector.podLabels) {
    const value = process.podLabel(key)
    if (value === undefined || !matches(pattern, value)) return false
  }
  return true
}

function within(ranges: readonly PortRange[], port: number): boolean {
  return ranges.some(({ from, to }) => port >= from && port <= to)
}

/** Whether a text matches a pattern with `*`. An empty pattern matches everything. Linear in both lengths. */
export function matches(pattern: string, text: string): boolean {
  if (pattern === '') return true
  const parts = pattern.split('*')
  const first = parts.shift()!
  if (parts.length === 0) return text === first
  const last = parts.pop()!
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length)
    return false
  let at = first.length
  for (const part of parts) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > text.length - last.length) return false
    at = found + part.length
  }
  return true
}
