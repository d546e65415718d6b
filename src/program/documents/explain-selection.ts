// Whether a process is selected for observation, or which rule excludes it.

import type { Config } from '../../config/index.ts'
import { matches, type PortRange } from '../../identity/entities/selection.ts'
import type { DocumentContext } from './document-context.ts'
import { isKernelThread } from './explain-target.ts'
import type { Finding, Subject } from './explain-types.ts'
import { selectionText } from './process-view.ts'

type Selector = Config['discovery']['instrument'][number]

const topic = 'selected'
/** Maximum number of `discovery.instrument` entries to explain. */
const mostEntries = 4

/** In order of evaluation: the agent itself, kernel threads, rules for processes, rules for ports. */
export function selectionFindings(parts: DocumentContext, subject: Subject): Finding[] {
  const { view } = subject
  if (view.pid === process.pid)
    return [
      {
        topic,
        state: 'note',
        text: 'this is svc, which never traces itself',
        hint: '',
        cause: 'agent',
        hides: true,
      },
    ]
  if (isKernelThread(view.pid))
    return [
      {
        topic,
        state: 'note',
        text: 'a kernel thread: it makes no requests by system calls, and has no program to probe',
        hint: '',
        cause: 'kernel_thread',
        hides: true,
      },
    ]
  const { selection } = view
  if (!selection.observed) return [unselected(parts, subject)]
  const ports = portFindings(parts, subject)
  return ports.length > 0
    ? ports
    : [{ topic, state: 'ok', text: `yes: ${selectionText(selection)}`, hint: '' }]
}

function unselected(parts: DocumentContext, { view }: Subject): Finding {
  const { selection } = view
  const { discovery } = parts.loaded().config
  if (selection.cause === 'instrumented')
    return {
      topic,
      state: 'limited',
      text: selectionText(selection),
      hint: 'no action needed; to have svc make its spans, disable its SDK',
      cause: 'instrumented',
    }
  const common = { topic, state: 'missing', cause: 'not_selected', hides: true } as const
  if (selection.cause === 'exclude') {
    const entry = entryText(discovery.exclude[selection.entry])
    const hint = `remove ${entry} from discovery.exclude`
    return { ...common, text: `not selected: ${selectionText(selection)}, by ${entry}`, hint }
  }
  const value = valuesOf(parts, view)
  const misses = discovery.instrument
    .slice(0, mostEntries)
    .map((entry, index) => mismatch(entry, `discovery.instrument[${index}]`, value, view.listening))
  const more = discovery.instrument.length - misses.length
  const others = more > 0 ? `; ${more} more entries do not match either` : ''
  return { ...common, text: `not selected: ${misses.join('; ')}${others}`, hint: hintOf(view) }
}

/** The keys of an entry that are set, in YAML. */
function entryText(entry: Selector | undefined): string {
  if (entry === undefined) return 'that entry'
  const { open_ports: ports, k8s_pod_labels: labels, ...texts } = entry
  const given = Object.entries(texts).filter(([, text]) => text !== '')
  if (ports.length > 0) given.push(['open_ports', `"${portsText(ports)}"`])
  for (const [label, value] of Object.entries(labels)) given.push([`k8s_pod_labels.${label}`, value])
  return `{${given.map(([key, text]) => `${key}: ${text}`).join(', ')}}`
}

function hintOf({ listening, executable, name }: Subject['view']): string {
  if (listening.length > 0) return `add {open_ports: "${listening.join(',')}"} to discovery.instrument`
  const entry = executable === '' ? `name: ${name}` : `exe_path: ${executable}`
  return `add {${entry}} to discovery.instrument`
}

/** The values of a process that selectors match; '' for none. */
type Values = (key: Exclude<keyof Selector, 'open_ports' | 'k8s_pod_labels'>) => string

function valuesOf(parts: DocumentContext, view: Subject['view']): Values {
  const attributes = parts.processes.known(view.pid)?.attributes
  const attribute = (key: string) => String(attributes?.get(key) ?? '')
  const values: Record<Parameters<Values>[0], string> = {
    exe_path: view.executable,
    name: view.name,
    k8s_namespace: view.podNamespace,
    k8s_pod_name: view.podName,
    k8s_deployment_name: attribute('k8s.deployment.name'),
    k8s_daemonset_name: attribute('k8s.daemonset.name'),
    k8s_statefulset_name: attribute('k8s.statefulset.name'),
    k8s_container_name: attribute('k8s.container.name') || view.containerName,
  }
  return key => values[key]
}

/** The first key of an entry that does not match the process. */
function mismatch(entry: Selector, path: string, value: Values, listening: readonly number[]): string {
  const { open_ports: ports, k8s_pod_labels: labels, ...texts } = entry
  for (const [key, pattern] of Object.entries(texts)) {
    if (pattern === '') continue
    const own = value(key as Parameters<Values>[0])
    if (own !== '' && matches(pattern, own)) continue
    const found = own === '' ? 'this process has none' : `this process has ${own}`
    return `${path}.${key} is ${pattern}; ${found}`
  }
  const listens = listening.some(port => ports.some(({ from, to }) => port >= from && port <= to))
  if (ports.length > 0 && !listens) {
    const own = listening.length === 0 ? 'listens on no port' : `listens on ${listening.join(',')}`
    return `${path}.open_ports is ${portsText(ports)}; this process ${own}`
  }
  return Object.keys(labels).length > 0
    ? `${path}.k8s_pod_labels does not match the labels of its pod`
    : `${path} does not match`
}

function portsText(ranges: readonly PortRange[]): string {
  return ranges.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(',')
}

/** `agent.ebpf.network.include_ports` and `exclude_ports`, which apply to the server's port of a connection. */
function portFindings(parts: DocumentContext, { port, view }: Subject): Finding[] {
  const ports = port === 0 ? view.listening : [port]
  if (ports.length === 0) return []
  const { network } = parts.loaded().config.agent.ebpf
  const whys = ports.map(each => leavesOut(network, each))
  const left = whys.flatMap(why => (why === undefined ? [] : [{ text: why.text, hint: why.hint }]))
  if (left.length === 0) return []
  const all = left.length === ports.length && (port !== 0 || !view.seen)
  if (all) return [{ topic, state: 'missing', ...left[0]!, cause: 'excluded_port', hides: true }]
  return [
    { topic, state: 'ok', text: `yes: ${selectionText(view.selection)}`, hint: '' },
    ...left.map(why => ({ topic, state: 'note' as const, ...why })),
  ]
}

/** Why connections to a server's port are excluded, and the fix; undefined if they are not. */
export function leavesOut(
  {
    include_ports,
    exclude_ports,
  }: Pick<Config['agent']['ebpf']['network'], 'include_ports' | 'exclude_ports'>,
  port: number,
): { readonly key: string; readonly text: string; readonly hint: string } | undefined {
  const path = 'agent.ebpf.network'
  if (exclude_ports.includes(port)) {
    const key = `${path}.exclude_ports`
    return { key, text: `${key} has ${port}, on which it listens`, hint: `remove ${port} from ${key}` }
  }
  if (include_ports.length === 0 || include_ports.includes(port)) return undefined
  const key = `${path}.include_ports`
  return {
    key,
    text: `${key} is ${shortList(include_ports)}; this process listens on ${port}`,
    hint: `add ${port} to ${key}, or leave it empty for all ports`,
  }
}

function shortList(ports: readonly number[]): string {
  return ports.length <= 8 ? ports.join(',') : `${ports.slice(0, 8).join(',')},…`
}
