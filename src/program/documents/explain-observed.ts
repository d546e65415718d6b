// Observed traffic of a process, and traffic that cannot be decoded.

import { protocols } from '../../signals/traces/protocols/index.ts'
import { off } from '../agent/off.ts'
import type { Tracing } from '../agent/tracing.ts'
import type { DocumentContext } from './document-context.ts'
import type { Connection } from './explain-connections.ts'
import { leavesOut } from './explain-selection.ts'
import type { Finding, Subject } from './explain-types.ts'

/** Usual TLS ports (IANA and common ones): unreadable bytes do not show that they are TLS. */
const tlsPorts = new Set([
  443, 465, 563, 636, 853, 989, 990, 993, 995, 2376, 4433, 5061, 5671, 6380, 6443, 6514, 8443, 8883, 9443,
  10250,
])
/** Maximum number of ports with unrecognised connections to list. */
const mostPorts = 4
const lastSeconds = 60

interface Libraries {
  /** Libraries whose TLS traffic is decoded. */
  readonly read: readonly string[]
  /** Libraries that cannot be probed, with the reason. */
  readonly refused: readonly { readonly path: string; readonly reason: string }[]
}

function librariesOf({ tls }: Tracing, pid: number): Libraries {
  const own = (tls?.attachments() ?? []).filter(({ inode }) => tls!.usersOf(inode).includes(pid))
  return {
    read: own.filter(({ attached }) => attached).map(({ path }) => path),
    refused: own.filter(({ attached }) => !attached),
  }
}

export function tlsFindings(parts: DocumentContext, tracing: Tracing, { pid }: Subject): Finding[] {
  const topic = 'tls'
  if (tracing.tls === undefined) {
    const isOff = !parts.loaded().config.agent.ebpf.network.tls
    return [
      isOff
        ? { topic, state: 'note', text: 'TLS traffic is not decoded', hint: readTlsHint }
        : {
            topic,
            state: 'note',
            text: `the back end ${tracing.capture.backend.name} cannot decode TLS traffic`,
            hint: backendHint,
          },
    ]
  }
  const { read, refused } = librariesOf(tracing, pid)
  const refusals = refused.map(({ path, reason }) => ({
    topic,
    state: 'limited' as const,
    text: `traffic through ${path} cannot be decoded: ${reason}`,
    hint: tlsHint,
  }))
  if (read.length > 0)
    return [
      { topic, state: 'ok', text: `traffic through ${read.join(', ')} is decoded`, hint: '' },
      ...refusals,
    ]
  if (refusals.length > 0) return refusals
  return [{ topic, state: 'note', text: 'no supported TLS library found in it so far', hint: '' }]
}

const readTlsHint = 'set agent.ebpf.network.tls: true'
const backendHint = 'run Linux 6.3 or newer: svc doctor traces'
const tlsHint =
  'terminate TLS in a proxy (nginx, Envoy) in front of it, or add an OpenTelemetry SDK; svc can decode OpenSSL and GnuTLS with their symbols'

/** Observed calls, and why connections are not observed. */
export function seenFindings(
  parts: DocumentContext,
  tracing: Tracing,
  subject: Subject,
  connections: readonly Connection[],
): Finding[] {
  const { port, view } = subject
  const { ports } = tracing.tracer
  const own = port === 0 ? view.listening : [port]
  const calls = own.reduce((sum, each) => sum + (ports.of(each)?.calls ?? 0), 0)
  const serves = own.some(each => view.served.includes(each))
  const isSeen = calls > 0 || serves || (port === 0 && view.seen)
  const agentMs = performance.now() - parts.startedMs
  const active = connections.filter(each => isActive(each, agentMs))
  if (!isSeen) return [unseen(parts, tracing, subject, connections, active), ...refusals(tracing, own)]
  return [
    seen(parts, subject, calls, serves),
    ...refusals(tracing, own),
    ...(port === 0 ? unknownFindings(parts, tracing, subject, active) : []),
  ]
}

/** It had traffic since the agent started, or may have had. */
function isActive({ idleMs, bytes }: Connection, agentMs: number): boolean {
  return (idleMs === undefined || idleMs < agentMs) && bytes !== 0
}

function seen(parts: DocumentContext, { port, view }: Subject, calls: number, serves: boolean): Finding {
  const topic = 'seen'
  if (port !== 0 && !serves)
    return {
      topic,
      state: 'ok',
      text: `${calls} ${plural(calls, 'call')} to port ${port}, seen from the clients`,
      hint: '',
    }
  let answered = 0
  let made = 0
  for (const { edge, count } of parts.window.edges.sums(lastSeconds)) {
    if (edge.to.name === view.name) answered += count
    if (edge.from.name === view.name) made += count
  }
  const what =
    calls === 0
      ? 'calls observed'
      : `${calls} ${plural(calls, 'call')} on ${port === 0 ? 'its ports' : `port ${port}`}`
  const late =
    answered + made === 0
      ? ''
      : `; in the last ${lastSeconds} s ${view.name} answered ${answered} and made ${made}`
  const text = `${what} since svc started${late}`
  return { topic, state: 'ok', text, hint: '' }
}

function refusals({ tracer }: Tracing, ports: readonly number[]): Finding[] {
  return ports.flatMap(port => {
    const refused = tracer.ports.of(port)?.refused ?? 0
    const text = `${refused} connections to port ${port} looked like a known protocol, but were not`
    return refused === 0 ? [] : [{ topic: 'seen', state: 'note' as const, text, hint: '' }]
  })
}

/** Unrecognised connections of a process with observed calls. */
function unknownFindings(
  parts: DocumentContext,
  { tracer }: Tracing,
  { view }: Subject,
  active: readonly Connection[],
): Finding[] {
  const { network } = parts.loaded().config.agent.ebpf
  const unknown = new Map<number, number>()
  for (const { localPort, peerPort } of active) {
    const port = view.listening.includes(localPort) ? localPort : peerPort
    if (tracer.ports.of(port) === undefined && leavesOut(network, port) === undefined)
      unknown.set(port, (unknown.get(port) ?? 0) + 1)
  }
  return [...unknown].slice(0, mostPorts).map(([port, count]) => ({
    topic: 'seen',
    state: 'note',
    text: `${count} ${plural(count, 'connection')} to port ${port} not recognised`,
    hint: protocolHint(parts),
  }))
}

/** Why no calls were observed. */
function unseen(
  parts: DocumentContext,
  tracing: Tracing,
  { port, view }: Subject,
  connections: readonly Connection[],
  active: readonly Connection[],
): Finding {
  const topic = 'seen'
  const at = port === 0 ? '' : ` at port ${port}`
  const { length: count } = connections
  if (count === 0) {
    const hint = port === 0 ? '' : `send it a request, for example: curl http://127.0.0.1:${port}/`
    return { topic, state: 'note', text: `no traffic yet: it has no connection${at} now`, hint }
  }
  const hidden = { topic, state: 'missing', hides: true } as const
  const open = `${count} ${plural(count, 'connection')}${at}`
  if (active.length === 0) {
    if (connections.every(({ bytes }) => bytes === 0))
      return { topic, state: 'note', text: `no traffic yet on its ${open}`, hint: '' }
    const began = Math.round((performance.now() - parts.startedMs) / 1000)
    return {
      ...hidden,
      text: `no traffic: its ${open} ${count === 1 ? 'is' : 'are'} older than svc and had no traffic since svc started ${began} s ago`,
      hint: 'no action needed: the next request will be observed; with TLS only on a new connection, so restart it if it keeps connections open',
      cause: 'started_before',
    }
  }
  const serverPort = ({ localPort, peerPort }: Connection) =>
    view.listening.includes(localPort) ? localPort : peerPort
  const { network } = parts.loaded().config.agent.ebpf
  const left = active.map(each => leavesOut(network, serverPort(each)))
  if (left[0] !== undefined && !left.includes(undefined))
    return {
      ...hidden,
      text: `${open} not observed: excluded by ${left[0].key}`,
      hint: left[0].hint,
      cause: 'excluded_port',
    }
  const tls = tlsFinding(parts, tracing, view, active)
  if (tls !== undefined) return { ...hidden, ...tls, text: `${open} not observed: ${tls.text}` }
  return {
    ...hidden,
    text: `${open} not observed, although ${active.length} had traffic: no known protocol was recognised`,
    hint: protocolHint(parts),
    cause: 'unknown_protocol',
  }
}

/** Why the TLS traffic of a process cannot be decoded; undefined if that is not the cause. */
function tlsFinding(
  parts: UiParts,
  tracing: Tracing,
  view: Subject['view'],
  active: readonly Connection[],
): Pick<Finding, 'text' | 'hint' | 'cause'> | undefined {
  const { read, refused } = librariesOf(tracing, view.pid)
  const speaksTls = active.some(
    ({ localPort, peerPort }) => tlsPorts.has(localPort) || tlsPorts.has(peerPort),
  )
  if (refused.length > 0 || (speaksTls && read.length === 0)) {
    const [first] = refused
    const text =
      first === undefined
        ? 'the traffic looks like TLS, but it has no supported TLS library (Go, Java and Rust have their own)'
        : `TLS traffic through ${first.path} cannot be decoded: ${first.reason}`
    const { tls } = parts.loaded().config.agent.ebpf.network
    const hint = tracing.tls !== undefined ? tlsHint : tls ? backendHint : readTlsHint
    return { text, hint, cause: 'tls_without_symbols' }
  }
  if (!speaksTls || !isOlder(parts, view.startedUs)) return undefined
  return {
    text: 'TLS sessions that are older than svc cannot be decoded, and this process is older',
    hint: 'restart it, or wait for new connections',
    cause: 'started_before',
  }
}

function isOlder(parts: DocumentContext, startedUs: number): boolean {
  const agentUs = (Date.now() - (performance.now() - parts.startedMs)) * 1000
  return startedUs > 0 && startedUs < agentUs
}

function protocolHint(parts: DocumentContext): string {
  const switches: Readonly<Record<string, unknown>> = { ...parts.loaded().config.agent.ebpf.network }
  const off = [...new Set(protocols.map(({ key }) => key))].filter(key => switches[key] === false)
  return off.length > 0
    ? `set ${off.map(key => `agent.ebpf.network.${key}: true`).join(', ')} if it uses that protocol`
    : `add an OpenTelemetry SDK; svc supports ${protocols.map(({ name }) => name).join(', ')}`
}

function plural(count: number, noun: string): string {
  return count === 1 ? noun : `${noun}s`
}

/** The names of the process. */
export function nameFindings(parts: DocumentContext, { view }: Subject): Finding[] {
  const topic = 'names'
  const names = [`service.name ${view.name}`]
  if (view.podName !== '') names.push(`pod ${view.podNamespace}/${view.podName}`)
  if (view.containerName !== '') names.push(`container ${view.containerName}`)
  const named: Finding = { topic, state: 'ok', text: names.join(', '), hint: '' }
  if (view.containerId === '' || view.containerName !== '') return [named]
  const { discovery } = parts.loaded().config.agent
  const fault = parts.discovery.faults[0]
  const id = view.containerId.slice(0, 12)
  const { detail: why, hint } = discovery.enabled
    ? {
        detail: fault?.reason ?? 'neither Docker nor Kubernetes reported it',
        hint: fault?.hint ?? 'svc doctor discovery',
      }
    : off('agent.discovery.enabled')
  return [
    named,
    {
      topic,
      state: 'limited',
      text: `the name of its container ${id} is unknown: ${why}`,
      hint,
      cause: 'container_not_visible',
    },
  ]
}
