// Why a process is observed or not, and where its data went.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { ownPids } from '../../kernel/needs.ts'
import type { ExplainDocument } from '../../view/api/ui/documents.ts'
import { Tracing, type TracingFault } from '../agent/tracing.ts'
import type { DocumentContext } from './document-context.ts'
import { connectionsOf } from './explain-connections.ts'
import { exportFindings, spanFindings } from './explain-export.ts'
import { nameFindings, seenFindings, tlsFindings } from './explain-observed.ts'
import { selectionFindings } from './explain-selection.ts'
import { type Meant, procDir, type Target, targetOf } from './explain-target.ts'
import type { Cause, Finding, Subject } from './explain-types.ts'
import { whyNoTracing } from './why-no-tracing.ts'

type Explained = ExplainDocument['subjects'][number]

/** Maximum number of explained processes: a port may have one per CPU. */
const mostSubjects = 8
const mostTitle = 160

/** Explains the matching processes, which takes some milliseconds each, and yields in between. */
export async function explain(parts: DocumentContext, target: string): Promise<ExplainDocument> {
  const word = target.trim()
  const found = await targetOf(parts, word)
  const subjects: Explained[] = []
  for (const meant of found.processes.slice(0, mostSubjects)) {
    const explained = await explainedProcess(parts, meant)
    if (explained !== undefined) subjects.push(explained)
    await nextTurn()
  }
  if (subjects.length === 0) subjects.push(...unseen(parts, word, found))
  return { target, subjects, hint: hintOf(found, subjects.length) }
}

function hintOf({ processes, hint }: Target, explained: number): string {
  const more = processes.length - mostSubjects
  if (more > 0) return `${more} more processes match; select one by its pid`
  return processes.length > 0 && explained === 0 ? 'the process has ended' : hint
}

async function explainedProcess(
  parts: DocumentContext,
  { pid, port }: Meant,
): Promise<Explained | undefined> {
  const view = await parts.processes.explain(pid)
  if (view === undefined) return undefined
  const subject: Subject = { pid, port, view }
  return conclude(parts, titleOf(parts, subject), pid, await findingsOf(parts, subject))
}

/** All steps, from selection to export. */
async function findingsOf(parts: DocumentContext, subject: Subject): Promise<Finding[]> {
  const selection = selectionFindings(parts, subject)
  const probes = probeFindings(parts)
  const { tracing } = parts
  // The remaining steps do not apply to an unobserved process.
  if (!(tracing instanceof Tracing) || selection.some(({ hides }) => hides))
    return [...selection, ...probes, ...exportFindings(parts)]
  const connections = await connectionsOf(procDir, subject.pid, subject.port)
  return [
    ...selection,
    ...probes,
    ...tlsFindings(parts, tracing, subject),
    ...seenFindings(parts, tracing, subject, connections),
    ...spanFindings(parts, tracing),
    ...nameFindings(parts, subject),
    ...exportFindings(parts),
  ]
}

/** Faults caused by missing permissions, not by the kernel. */
const lacksRights = /not permitted|EPERM|EACCES|\bCAP_|user namespace|seccomp|lockdown/i

function probeFindings(parts: DocumentContext): Finding[] {
  const { tracing } = parts
  const topic = 'probes'
  if (!(tracing instanceof Tracing)) {
    const { reason, hint } = whyNoTracing(parts)!
    const text = `tracing is not running: ${reason}`
    return [
      {
        topic,
        state: 'missing',
        text,
        hint: hint || 'svc doctor traces',
        cause: causeOf(tracing),
        hides: true,
      },
    ]
  }
  const { backend, socketsFound } = tracing.capture
  const ok: Finding = {
    topic,
    state: 'ok',
    text: `socket calls, captured by ${backend.name}; ${socketsFound} sockets were open at the start`,
    hint: '',
  }
  return [
    ok,
    ...tracing.limits.map(({ reason, hint }) => ({ topic, state: 'limited' as const, text: reason, hint })),
  ]
}

/** Why tracing is not running; undefined if it was not requested. */
function causeOf(fault: TracingFault | undefined): Cause {
  if (fault === undefined) return 'switched_off'
  return lacksRights.test(fault.reason) ? 'permission' : 'kernel_feature_missing'
}

/** Causes that lose part of the data, the most severe first. */
const byWeight: readonly Cause[] = [
  'instrumented',
  'queue_full',
  'endpoint_down',
  'rate_limited',
  'sampled',
  'container_not_visible',
]

/** A cause that hides all data outweighs one that loses part of it. */
function conclude(
  parts: DocumentContext,
  title: string,
  pid: number,
  findings: readonly Finding[],
): Explained {
  const decisive =
    findings.find(({ hides }) => hides) ??
    findings
      .filter(({ cause }) => cause !== undefined)
      .sort((one, other) => byWeight.indexOf(one.cause!) - byWeight.indexOf(other.cause!))[0]
  const verdict = decisive === undefined ? 'observed' : decisive.hides ? 'not_observed' : 'limited'
  return {
    title,
    pid,
    verdict,
    cause: decisive?.cause ?? '',
    steps: findings.map(({ topic, state, text, hint }) => ({
      topic,
      state,
      text: parts.shown(text),
      hint: parts.shown(hint),
    })),
  }
}

function titleOf(parts: DocumentContext, { pid, port, view }: Subject): string {
  const { executable, commandLine, podName, podNamespace, containerName, containerId } = view
  const what = parts.shown(commandLine || executable || view.name).slice(0, mostTitle)
  const at = port === 0 ? '' : `port ${port} → `
  const container = containerName || containerId.slice(0, 12)
  if (podName !== '') {
    const within = container === '' ? '' : ` (container ${container})`
    return `${at}pid ${pid} ${what} · pod ${podNamespace}/${podName}${within}`
  }
  return `${at}pid ${pid} ${what}${container === '' ? '' : ` · container ${container}`}`
}

/** The target exists, or may exist, without a visible process. */
function unseen(
  parts: DocumentContext,
  word: string,
  { hiddenPort, container, hint, processes }: Target,
): Explained[] {
  const shown = parts.shown(word)
  // It has ended, or the numbers of /proc differ from those of the kernel.
  const apart = apartFinding(parts)
  if (hiddenPort !== 0) {
    const text = `TCP port ${hiddenPort} is in use, but by no process that svc can see`
    const rights: Finding = {
      topic: 'selected',
      state: 'missing',
      text: `${text}: it belongs to a user whose descriptors svc cannot read, or to the kernel`,
      hint: 'run svc as root, or with the capabilities SYS_PTRACE and DAC_READ_SEARCH: svc doctor processes',
      cause: 'permission',
      hides: true,
    }
    const found = apart === undefined ? rights : { ...apart, text: `${text}: ${apart.text}` }
    return [conclude(parts, `port ${hiddenPort}`, 0, [found, ...rest(parts)])]
  }
  if (container !== undefined) {
    const { name, id, state } = container
    const text =
      state === 'running' || state === ''
        ? `none of its processes is visible${apart === undefined ? '' : `: ${apart.text}`}`
        : `it is ${state} and has no process`
    const hint = apart?.hint ?? (state === 'running' ? 'svc doctor processes' : 'start the container')
    const finding: Finding = {
      topic: 'selected',
      state: 'missing',
      text,
      hint,
      cause: 'container_not_visible',
      hides: true,
    }
    return [conclude(parts, `container ${name || id.slice(0, 12)}`, 0, [finding, ...rest(parts)])]
  }
  if (processes.length > 0 && apart !== undefined) return [conclude(parts, shown, 0, [apart, ...rest(parts)])]
  if (hint === '' || /^\d+$|:/.test(word) || word === '') return []
  const findings = [...(apart === undefined ? [] : [apart]), ...runtimeFindings(parts)]
  return findings.length === 0 ? [] : [conclude(parts, shown, 0, [...findings, ...rest(parts)])]
}

function rest(parts: DocumentContext): Finding[] {
  return [...probeFindings(parts), ...exportFindings(parts)]
}

/** Set if the agent runs in its own pid namespace. */
function apartFinding({ tracing }: DocumentContext): Finding | undefined {
  const limit =
    tracing instanceof Tracing
      ? tracing.limits.find(({ reason }) => reason.startsWith(ownPids.detail))
      : undefined
  if (limit === undefined) return undefined
  return {
    topic: 'selected',
    state: 'missing',
    text: limit.reason,
    hint: limit.hint,
    cause: 'container_not_visible',
    hides: true,
  }
}

/** Sources of container and pod names that do not answer: the name may be one of theirs. */
function runtimeFindings(parts: DocumentContext): Finding[] {
  return parts.discovery.faults.map(({ subsystem, reason, hint }) => ({
    topic: 'selected',
    state: 'missing' as const,
    text: `unknown name; ${subsystem.replace('discovery: ', '')} may know it, but does not answer: ${reason}`,
    hint,
    cause: 'container_not_visible' as const,
    hides: true,
  }))
}
