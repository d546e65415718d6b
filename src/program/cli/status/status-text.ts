import { counted, countText, grouped, partText, sizeText } from '../../../foundation/lib/number-text.ts'
import { padLeft, padRight, terminalText, wrapped } from '../../../foundation/lib/terminal-text.ts'
import type {
  ExportDocument,
  QueueDocument,
  ReadinessChecks,
  StatusDocument,
} from '../../../view/api/types.ts'
import type { PipelineLine } from '../../../view/api/ui/documents.ts'
import { fillOf } from '../bars.ts'
import { type Loss, lossesOf, meaningOf } from '../losses.ts'
import type { Look, Pen } from '../pen.ts'
import { memoryLines, memoryText } from './memory-lines.ts'

export interface Readiness {
  readonly status: 'ready' | 'not_ready'
  readonly checks: ReadinessChecks
}

export interface Found {
  readonly status: StatusDocument
  readonly ready: Readiness
  readonly export: ExportDocument
  /** Null: the agent keeps no data for the page. */
  readonly pipeline: PipelineLine | null
  /** URL of the page; empty for none. */
  readonly page: string
}

interface Style {
  readonly unicode: boolean
  readonly columns: number
  readonly pen: Pen
}

/** A summary of an agent, one screen long. */
export function statusText(found: Found, style: Style): string {
  const lines = [
    ...headLines(found, style),
    ...subsystemLines(found, style),
    ...exportLines(found, style),
    ...queueLines(found, style),
    ...memoryLines(found.status.memory.tables, style),
    ...lossLines(found, style),
  ]
  return `${lines.map(line => line.trimEnd()).join('\n')}\n`
}

function headLines({ status, ready, page }: Found, { unicode, pen }: Style): string[] {
  const shown = (text: string) => terminalText(text, unicode)
  const { version, commit, uptime, mode, host } = status
  const isReady = ready.status === 'ready'
  return [
    `${pen(`svc ${shown(version)}`, 'bold')} (commit ${shown(commit)}), mode ${shown(mode)}, up ${shown(uptime)}, ${pen(isReady ? 'ready' : 'NOT READY', isReady ? 'green' : 'red')}`,
    `${shown(host.name)}, ${shown(host.os)} ${shown(host.kernel)} ${shown(host.arch)}`,
    ...(page === '' ? [] : [`Page: ${shown(page)}`]),
    '',
  ]
}

function subsystemLines({ status, ready }: Found, style: Style): string[] {
  const { ebpf, profiling, discovery, degraded, memory, cpu, last_run, event_loop } = status
  const on: [name: string, detail: string][] = [
    ['eBPF', ebpfText(ebpf)],
    ['profiles', profiling.enabled ? `on, ${profiling.sample_rate} Hz` : 'off'],
    [
      'discovery',
      `docker ${discovery.docker ? counted(discovery.containers_discovered, 'container') : 'off'}, kubernetes ${discovery.kubernetes ? counted(discovery.pods_discovered, 'pod') : 'off'}`,
    ],
    ['memory', memoryText(memory)],
    ['cpu', cpuText(cpu)],
    ...loopLines(event_loop),
    ...lastRunLines(last_run),
  ]
  const failed = Object.entries(ready.checks).filter(([, check]) => check !== 'ok')
  return [
    ...on.flatMap(([name, detail]) => entry(name, detail, undefined, style)),
    ...failed.flatMap(([name, check]) => entry(name, check, 'red', style)),
    ...degraded.flatMap(({ subsystem, reason, hint }) => [
      ...entry(subsystem, `limited: ${reason}`, 'yellow', style),
      ...(hint === '' ? [] : entry('', `Fix: ${hint}`, undefined, style)),
    ]),
    '',
  ]
}

function ebpfText({ enabled, programs_loaded, parts }: StatusDocument['ebpf']): string {
  const of = (wanted: string) => parts.filter(({ state }) => state === wanted)
  const on = of('on').map(({ subsystem }) => subsystem)
  if (enabled) return `${counted(programs_loaded, 'program')} in the kernel: ${on.join(', ')}`
  if (of('failed').length > 0) return 'no program in the kernel'
  return `off: ${[...new Set(of('off').map(({ reason }) => reason))].join(', ')}`
}

function cpuText({ used_cores, limit_cores, reduced: lowered }: StatusDocument['cpu']): string {
  const less = lowered.map(({ effect }) => effect).join('; ')
  return `${used_cores.toFixed(2)} of ${limit_cores.toFixed(2)} cores${less === '' ? '' : ` (${less})`}`
}

function lastRunLines(last: StatusDocument['last_run']): [string, string][] {
  if (last === null || last.ended === 'clean') return []
  return [
    ['last run', `ended at ${last.ended_at}: ${last.reason}${last.hint === '' ? '' : `; ${last.hint}`}`],
  ]
}

/** Turns of the event loop from this length on are reported: requests wait for their end. */
const longTurnMs = 100

function loopLines(loop: StatusDocument['event_loop']): [string, string][] {
  if (loop === null || loop.longest_ms < longTurnMs) return []
  return [
    [
      'event loop',
      `longest turn ${loop.longest_last_minute_ms} ms in the last minute, ${loop.longest_ms} ms since start`,
    ],
  ]
}

const termWidth = 12

function entry(
  term: string,
  meaning: string,
  look: Look | undefined,
  { unicode, columns, pen }: Style,
): string[] {
  const [first = '', ...rest] = wrapped(terminalText(meaning, unicode), Math.max(30, columns - termWidth - 3))
  const indent = ' '.repeat(termWidth + 3)
  return [
    `  ${padRight(terminalText(term, unicode), termWidth)} ${pen(first, look)}`,
    ...rest.map(line => indent + pen(line, look)),
  ]
}

function exportLines({ export: exporting }: Found, style: Style): string[] {
  const {
    endpoint,
    protocol,
    tls,
    compression,
    connected,
    last_export,
    last_error,
    destinations,
    disk_queue,
  } = exporting
  if (endpoint === '' && destinations.length === 0)
    return [...entry('export', 'none: data stays on this host; set otlp.endpoint', 'yellow', style), '']
  const how = `${protocol}, ${tls ? 'TLS' : 'no TLS'}, compression ${compression}`
  const state = connected ? `connected, last export ${last_export ?? 'none yet'}` : 'NOT CONNECTED'
  const failing = destinations.filter(
    ({ last_error: error, credentials_rejected: parked }) => parked || error !== null,
  )
  return [
    ...entry('export', `${endpoint} (${how}): ${state}`, connected ? undefined : 'red', style),
    ...(failing.length === 0 && last_error !== null ? entry('', last_error, 'red', style) : []),
    ...failing.flatMap(({ signal, last_error: error, credentials_rejected: parked, next_attempt }) =>
      entry(
        '',
        `${signal}: ${error ?? 'rejected'}${parked ? '; credentials rejected, data is kept' : ''}${next_attempt === null ? '' : `; next attempt ${next_attempt}`}`,
        'red',
        style,
      ),
    ),
    ...(disk_queue === null || disk_queue.state === 'ok'
      ? []
      : entry('disk queue', disk_queue.reason, 'yellow', style)),
    '',
  ]
}

function queueLines({ export: { queues, disk_queue }, pipeline }: Found, { unicode, pen }: Style): string[] {
  const losses = pipeline === null ? [] : lossesOf(pipeline)
  const row = ([signal, queue]: [string, QueueDocument]) => {
    const { size, exported, dropped, bytes, capacity_bytes, on_disk } = queue
    const fill = capacity_bytes > 0 ? bytes / capacity_bytes : 0
    const isLossy =
      pipeline === null ? dropped > 0 : losses.some(loss => loss.signal === signal && !loss.isIntended)
    const numbers = padLeft(countText(exported), 10) + padLeft(countText(size), 10)
    const lost = pen(padLeft(`${countText(dropped)}${isLossy ? '!' : ''}`, 10), isLossy ? 'red' : undefined)
    const bar = pen(fillOf(fill, unicode), fill > 0.8 ? 'red' : undefined)
    const taken = on_disk ? `${sizeText(bytes)} on disk` : partText(bytes, capacity_bytes)
    return `  ${padRight(signal, 9)}${numbers}${lost}  ${bar} ${taken}`
  }
  const titles = ['EXPORTED', 'QUEUED', 'DROPPED'].map(title => padLeft(title, 10)).join('')
  return [
    pen(`  ${padRight('SIGNAL', 9)}${titles}  QUEUE`, 'dim'),
    ...Object.entries(queues).map(row),
    ...(disk_queue === null
      ? []
      : [`  queue on disk: ${partText(disk_queue.bytes, disk_queue.max_bytes)} for all signals together`]),
  ]
}

function lossLines({ pipeline }: Found, { unicode, pen }: Style): string[] {
  const losses = pipeline === null ? [] : lossesOf(pipeline)
  if (losses.length === 0) return []
  const row = (loss: Loss) => {
    const items = pen(padLeft(grouped(loss.items), 12), loss.isIntended ? undefined : 'red')
    const sign = loss.isIntended ? ' ' : '!'
    return `  ${padRight(loss.signal, 9)}${items}${sign} ${terminalText(loss.reason, unicode)}${meaningOf(loss)}`
  }
  return ['', pen('  DROPPED SINCE START', 'dim'), ...losses.map(row)]
}
