// What feeds the pipeline, and what of it is off or does not work.

import type { PipelineLine } from '../../api/ui/documents.ts'
import { lostRecords } from '../../probes/capture.ts'
import { connections } from '../kernel-parts.ts'
import { kernelState } from '../kernel-state.ts'
import { Tracing } from '../tracing.ts'
import type { UiParts } from './parts.ts'
import { whyNoTracing } from './why-no-tracing.ts'

export type PipelineNode = PipelineLine['nodes'][number]
type Fact = PipelineNode['facts'][number]

/** Items that a source has told of since the start, by signal; left out: what nobody else told of. */
export type SourceCounts = { readonly [signal in PipelineNode['signals'][number]]?: number | 'rest' }

export interface PipelineSource {
  readonly node: PipelineNode
  readonly counts: SourceCounts
}

/** Those that are on first. Of each signal at most one is counted as the rest. */
export function pipelineSources(parts: UiParts): PipelineSource[] {
  const sources = [
    requests(parts),
    measured(parts),
    profiles(parts),
    logs(parts),
    processEvents(parts),
    scraping(parts),
    hostMetrics(parts),
    gpus(parts),
    ownTraces(parts),
  ].filter(source => source !== undefined)
  return sources.sort((a, b) => Number(a.node.state === 'off') - Number(b.node.state === 'off'))
}

export function fact(name: string, value: string | number): Fact {
  return { name, value: typeof value === 'number' ? value.toLocaleString('en-US') : value }
}

function source(
  node: Pick<PipelineNode, 'id' | 'name' | 'signals'> & Partial<PipelineNode>,
  counts: SourceCounts = {},
): PipelineSource {
  return { node: { kind: 'source', state: 'ok', reason: '', facts: [], ...node }, counts }
}

function requests(parts: UiParts): PipelineSource {
  const { tracing } = parts
  const node = { id: 'source:requests', name: 'requests (eBPF)', signals: ['traces' as const] }
  if (!(tracing instanceof Tracing)) {
    const { reason, hint } = whyNoTracing(parts)!
    const state = tracing === undefined ? 'off' : 'failed'
    return source({ ...node, state, reason: sentence(reason, hint) })
  }
  const { capture, tracer, protocols, streams, limits } = tracing
  const counters = capture.counters()
  const reason = limits.map(limit => sentence(limit.reason, limit.hint)).join('; ')
  return source(
    {
      ...node,
      state: reason === '' ? 'ok' : 'limited',
      reason,
      facts: [
        fact('back end', capture.backend.name),
        fact('protocols', protocols),
        fact('connections decoded in user space', streams.size),
        fact('unrecognised connections', counters.not_recognised),
        fact('exchanges over the span budget', counters.over_budget),
        fact('records lost, buffer full', lostRecords(counters)),
        fact('calls of unselected processes', tracer.unselected),
      ],
    },
    { traces: 'rest' },
  )
}

/** What is measured here comes together, and is counted together. */
function measured(parts: UiParts): PipelineSource {
  const { tracing, gpu } = parts
  const counted = kernelState(parts).find(({ subsystem }) => subsystem === connections.subsystem)
  const metrics = parts.hostMetrics()
  const facts: Fact[] = []
  if (tracing instanceof Tracing) facts.push(fact('request series', tracing.red.series))
  if (counted?.state === 'on') facts.push(fact('connections', 'on'))
  if (metrics !== undefined) facts.push(fact('host collectors', metrics.collectors))
  if (metrics?.server !== undefined) facts.push(fact('also served at', metrics.server.url('/metrics')))
  const gpus = gpu.source?.state
  if (gpus?.on) facts.push(fact('GPUs', gpus.devices.length))
  const isOn = facts.length > 0
  return source(
    {
      id: 'source:metrics',
      name: 'metrics of this host',
      signals: ['metrics'],
      state: isOn ? 'ok' : 'off',
      reason: isOn ? '' : 'switched off: set agent.nodeexporter.enabled: true',
      facts,
    },
    isOn ? { metrics: 'rest' } : {},
  )
}

function profiles(parts: UiParts): PipelineSource {
  const { profiling } = parts
  const { config } = parts.loaded()
  const node = { id: 'source:profiles', name: 'profiles', signals: ['profiles' as const] }
  const faults = profiling.faults.map(({ reason, hint }) => sentence(reason, hint)).join('; ')
  const { sampler, profiler } = profiling
  if (sampler === undefined || profiler === undefined) {
    if (faults !== '') return source({ ...node, state: 'failed', reason: faults })
    const key = config.agent.ebpf.enabled ? 'agent.profiling.enabled' : 'agent.ebpf.enabled'
    const reason =
      config.mode === 'collector' ? 'mode is collector: set mode: agent' : `switched off: set ${key}: true`
    return source({ ...node, state: 'off', reason })
  }
  return source(
    {
      ...node,
      state: faults === '' ? 'ok' : 'limited',
      reason: faults,
      facts: [fact('samples/s per CPU', profiler.rate), fact('stacks', profiler.stacks)],
    },
    { profiles: 'rest' },
  )
}

function logs(parts: UiParts): PipelineSource {
  const { config } = parts.loaded()
  const { status, faults } = parts.logs
  const node = { id: 'source:logs', name: 'logs', signals: ['logs' as const] }
  const reason = faults.map(each => sentence(each.reason, each.hint)).join('; ')
  if (!status.enabled) {
    if (reason !== '') return source({ ...node, state: 'failed', reason })
    const why =
      config.mode === 'collector'
        ? 'mode is collector: set mode: agent'
        : 'switched off: set agent.logs.enabled: true'
    return source({ ...node, state: 'off', reason: why })
  }
  let records = 0
  for (const total of status.records.values()) records += total
  const paused = status.paused ? 'paused until the queue has space: see its exporter' : ''
  return source(
    {
      ...node,
      state: reason === '' && paused === '' ? 'ok' : 'limited',
      reason: [reason, paused].filter(text => text !== '').join('; '),
      facts: [
        fact('files', status.files),
        fact('bytes unread', status.behindBytes),
        fact('bytes read', status.readBytes),
        fact('files lost by rotation', status.lostRotations),
        fact('files not followed', status.leftOut.files),
      ],
    },
    { logs: records },
  )
}

function processEvents(parts: UiParts): PipelineSource | undefined {
  const { enabled } = parts.loaded().config.agent.ebpf.process
  if (parts.kernel === undefined || !enabled) return undefined
  const fault = parts.kernel.faults.find(({ subsystem }) => subsystem === 'process events')
  const node = { id: 'source:events', name: 'process events', signals: ['logs' as const] }
  return fault === undefined
    ? source(node, { logs: 'rest' })
    : source({ ...node, state: 'failed', reason: sentence(fault.reason, fault.hint) })
}

function scraping(parts: UiParts): PipelineSource {
  const { scraping: own } = parts
  const node = { id: 'source:scraping', name: 'scraped targets', signals: ['metrics' as const] }
  if (!own.isOn) {
    const { enabled } = parts.loaded().config.collectors.prometheus
    const reason = enabled
      ? 'no targets: add some to collectors.prometheus.scrape_configs'
      : 'switched off: set collectors.prometheus.enabled: true'
    return source({ ...node, state: 'off', reason })
  }
  const { totals, jobs, faults } = own
  const targets = jobs.reduce((sum, job) => sum + job.targets.length, 0)
  const reason = faults.map(each => sentence(each.reason, each.hint)).join('; ')
  return source(
    {
      ...node,
      state: reason === '' ? 'ok' : 'limited',
      reason,
      facts: [
        fact('jobs', jobs.length),
        fact('targets', targets),
        fact('scrapes', totals.scrapes),
        fact('failed', totals.failures),
        fact('missed', totals.missed),
      ],
    },
    { metrics: totals.samples },
  )
}

/** Only where they are off, or less than asked for: else they are among what is measured here. */
function hostMetrics(parts: UiParts): PipelineSource | undefined {
  const metrics = parts.hostMetrics()
  const node = { id: 'source:host-metrics', name: 'host metrics', signals: ['metrics' as const] }
  if (metrics === undefined)
    return source({ ...node, state: 'off', reason: 'switched off: set agent.nodeexporter.enabled: true' })
  const reason = metrics.faults.map(each => sentence(each.reason, each.hint)).join('; ')
  return reason === '' ? undefined : source({ ...node, state: 'limited', reason })
}

function gpus(parts: UiParts): PipelineSource | undefined {
  const state = parts.gpu.source?.state
  if (state?.on && state.hint === '') return undefined
  const node = { id: 'source:gpus', name: 'GPUs', signals: ['metrics' as const] }
  if (state === undefined)
    return source({ ...node, state: 'off', reason: 'switched off: set agent.gpu.enabled: true' })
  const reason = sentence(state.reason, state.hint) || 'not detected yet'
  return source({ ...node, state: state.hint === '' ? 'off' : 'limited', reason })
}

function ownTraces(parts: UiParts): PipelineSource {
  const { self } = parts
  const { enabled } = parts.loaded().config.self_telemetry.tracing
  const node = { id: 'source:self', name: 'svc’s own traces', signals: ['traces' as const] }
  if (!enabled)
    return source({
      ...node,
      state: 'off',
      reason: 'switched off: set self_telemetry.tracing.enabled: true',
    })
  return source(
    { ...node, facts: [fact('spans', self.made), fact('dropped', self.lost)] },
    { traces: self.made },
  )
}

/** A reason with what fixes it. */
export function sentence(reason: string, hint: string): string {
  return hint === '' ? reason : `${reason}: ${hint}`
}
