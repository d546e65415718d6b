// Data flow and losses: the balance of each signal, and its stages.

import { type Signal, signals } from '../../foundation/model/signal.ts'
import { DiskStore } from '../../pipeline/disk/disk-store.ts'
import type { SignalQueueState } from '../../pipeline/pipeline.ts'
import type { PipelineLine } from '../../view/api/ui/documents.ts'
import type { Live } from '../../view/api/ui/source.ts'
import { queueHint } from '../agent/export-pipelines.ts'
import { fact } from '../agent/subsystem.ts'
import { Tracing } from '../agent/tracing.ts'
import type { DocumentContext } from './document-context.ts'
import { intended } from './losses.ts'
import { type PipelineNode, type PipelineSource, pipelineSources, sentence } from './pipeline-sources.ts'
import { RecentRates } from './recent-rates.ts'

type Edge = PipelineLine['edges'][number]
type Balance = PipelineLine['signals'][number]

export function pipeline(parts: DocumentContext): Live<PipelineLine> {
  const rates = new RecentRates()
  return {
    everyMs: 1000,
    next: () => [lineOf(parts, rates)],
  }
}

/** Above this fill level a queue will soon drop new items. */
const nearlyFull = 0.8
const mostSeconds = 86_400 * 30

function lineOf(parts: DocumentContext, rates: RecentRates): PipelineLine {
  const { tracing, pipelines } = parts
  if (tracing instanceof Tracing && !parts.stopping()) tracing.sync()
  const states = new Map(signals.map(signal => [signal, pipelines.pipeline.state(signal)]))
  // Spans that wait for their peer are received, but not yet in the pipeline.
  const early = pipelines.waiting('traces') - states.get('traces')!.queued
  const sources = pipelineSources(parts)
  const processors = processorsOf(parts)
  rates.read(readings(states, early, sources, processors), performance.now())
  const graph = new Graph(rates)
  for (const signal of signals) graph.signal(signal, states.get(signal)!, sources, processors)
  return {
    at_ms: Date.now(),
    signals: signals.map(signal =>
      balanceOf(signal, states.get(signal)!, signal === 'traces' ? early : 0, rates),
    ),
    nodes: [
      ...sources.map(({ node }) => node),
      ...processors.map(({ node }) => node),
      ...signals.map(signal => queueOf(parts, signal, states.get(signal)!)),
      ...exportersOf(parts, states),
    ],
    edges: graph.edges,
  }
}

function balanceOf(signal: Signal, state: SignalQueueState, early: number, rates: RecentRates): Balance {
  const growth = rates.change(`${signal} bytes`)
  const left = (state.capacityBytes - state.queuedBytes) / growth
  return {
    signal,
    collected: state.collected + early,
    recovered: state.recovered,
    exported: state.exported,
    rejected: state.rejected,
    dropped: [...state.dropped]
      .map(([reason, items]) => ({ reason, items, intended: intended.has(reason) }))
      .sort((a, b) => b.items - a.items),
    queued: state.queued + early,
    collected_per_s: rates.rate(`${signal} collected`),
    exported_per_s: rates.rate(`${signal} exported`),
    dropped_per_s: rates.rate(`${signal} dropped`),
    queued_bytes: state.queuedBytes,
    capacity_bytes: state.capacityBytes,
    full_in_s: growth > 0 && left < mostSeconds ? Math.max(0, left) : null,
    oldest_ms: state.oldestMs,
    durable: state.durable,
  }
}

interface ProcessorNode {
  readonly node: PipelineNode
  /** Items that it dropped, by signal. */
  readonly dropped: ReadonlyMap<Signal, number>
}

/** Stages with one name. */
interface Stages {
  readonly signals: Signal[]
  readonly warnings: string[]
  readonly details: PipelineNode['details'][number][]
  readonly dropped: Map<Signal, number>
}

/** One node represents the stages with its name for all signals. */
function processorsOf({ pipelines }: DocumentContext): ProcessorNode[] {
  const found = new Map<string, Stages>()
  for (const signal of signals)
    for (const { name, stage } of pipelines.stages(signal)) {
      const known: Stages = found.get(name) ?? { signals: [], warnings: [], details: [], dropped: new Map() }
      found.set(name, known)
      known.signals.push(signal)
      if (stage.warning) known.warnings.push(stage.warning)
      stage.counters((rule, outcome, total) => {
        // With a rule, the counter may be for dropped attributes.
        if (rule === '' && outcome === 'dropped')
          known.dropped.set(signal, (known.dropped.get(signal) ?? 0) + total)
        if (total > 0) known.details.push(fact([signal, rule, outcome].filter(Boolean).join(' '), total))
      })
    }
  return [...found].map(([name, { signals: own, warnings, details, dropped }]) => ({
    dropped,
    node: {
      id: `processor:${name}`,
      kind: 'processor',
      name,
      signals: own,
      state: warnings.length === 0 ? 'ok' : 'limited',
      reason: warnings.join('; '),
      details: details.slice(0, mostFacts),
    },
  }))
}

const mostFacts = 64

function queueOf(parts: DocumentContext, signal: Signal, state: SignalQueueState): PipelineNode {
  const { store } = parts.pipelines
  const fill = parts.pipelines.pipeline.fill(signal)
  const details = [
    fact('waiting', state.queued),
    fact('bytes', state.durable ? state.queuedBytes : `${state.queuedBytes} of ${state.capacityBytes}`),
    fact('stored', state.durable ? 'on disk' : 'in memory'),
    ...(store instanceof DiskStore
      ? [fact('all signals on disk', `${store.state.bytes} of ${store.state.maxBytes}`)]
      : []),
    fact('oldest', `${Math.round(state.oldestMs)} ms`),
  ]
  const node = { id: `queue:${signal}`, kind: 'queue', name: signal, signals: [signal], details } as const
  if (state.destination === undefined)
    return {
      ...node,
      state: 'off',
      reason: 'no exporter configured, so nothing is queued: set otlp.endpoint',
    }
  if (store instanceof DiskStore && store.state.state !== 'ok')
    return { ...node, state: 'failed', reason: store.state.reason }
  if (fill >= nearlyFull) {
    const share = `${Math.round(100 * fill)} % full; new items are dropped once it is full`
    return {
      ...node,
      state: 'limited',
      reason: `${share}: fix the export, or raise ${state.durable ? 'pipeline.export.queue.max_size_bytes' : `queues.${signal}.mem_limit`}`,
    }
  }
  if (typeof store === 'string')
    return {
      ...node,
      state: 'limited',
      reason: `kept in memory, so a crash loses its items: ${store}: ${queueHint}`,
    }
  return { ...node, state: 'ok', reason: '' }
}

function exporterIdOf({ destination }: SignalQueueState): string {
  return `exporter:${destination?.endpoint ?? ''}`
}

/** One node per endpoint; without an exporter, one that says why. */
function exportersOf(parts: DocumentContext, states: ReadonlyMap<Signal, SignalQueueState>): PipelineNode[] {
  const { config } = parts.loaded()
  const nodes = new Map<string, PipelineNode>()
  for (const signal of signals) {
    const state = states.get(signal)!
    const id = exporterIdOf(state)
    const own = exporterOf(parts, signal, state)
    const known = nodes.get(id)
    const name = state.destination?.endpoint ?? 'no endpoint'
    if (known === undefined) {
      const details = state.destination === undefined ? [] : [fact('protocol', config.otlp[signal].protocol)]
      nodes.set(id, {
        id,
        kind: 'exporter',
        name,
        signals: [signal],
        ...own,
        details: [...details, ...own.details],
      })
      continue
    }
    const reasons = new Set([known.reason, own.reason].filter(reason => reason !== ''))
    nodes.set(id, {
      ...known,
      signals: [...known.signals, signal],
      state: worse(known.state, own.state),
      reason: [...reasons].join('; '),
      details: [...known.details, ...own.details],
    })
  }
  return [...nodes.values()]
}

type NodeState = PipelineNode['state']

function exporterOf(
  { pipelines }: DocumentContext,
  signal: Signal,
  { destination, requests, failedRequests, retries }: SignalQueueState,
): Pick<PipelineNode, 'state' | 'reason' | 'details'> {
  const fault = pipelines.faults.find(each => each.signal === signal)
  if (destination === undefined)
    return fault === undefined
      ? { state: 'off', reason: 'no exporter configured: set otlp.endpoint', details: [] }
      : { state: 'failed', reason: sentence(fault.reason, fault.hint), details: [] }
  const details =
    requests === 0
      ? []
      : [
          fact(`${signal} requests`, requests),
          fact(`${signal} failed`, failedRequests),
          fact(`${signal} retries`, retries),
        ]
  const { lastError, lastWarning } = destination
  if (lastError !== null)
    return { state: 'failed', reason: `${signal}: ${lastError}: run svc doctor export to test it`, details }
  if (lastWarning !== null) return { state: 'limited', reason: `${signal}: ${lastWarning}`, details }
  return { state: 'ok', reason: '', details }
}

const badness: readonly NodeState[] = ['off', 'ok', 'limited', 'failed']

function worse(a: NodeState, b: NodeState): NodeState {
  return badness.indexOf(a) >= badness.indexOf(b) ? a : b
}

/** Losses, without intended drops. */
function lossesOf({ dropped, rejected }: SignalQueueState): number {
  let lost = rejected
  for (const [reason, items] of dropped) if (!intended.has(reason)) lost += items
  return lost
}

function readings(
  states: ReadonlyMap<Signal, SignalQueueState>,
  early: number,
  sources: readonly PipelineSource[],
  processors: readonly ProcessorNode[],
): Map<string, number> {
  const values = new Map<string, number>()
  for (const [signal, state] of states) {
    values.set(`${signal} collected`, state.collected + (signal === 'traces' ? early : 0))
    values.set(`${signal} exported`, state.exported)
    values.set(`${signal} dropped`, lossesOf(state))
    values.set(`${signal} accepted`, state.accepted)
    values.set(`${signal} bytes`, state.queuedBytes)
  }
  for (const { node, counts } of sources)
    for (const [signal, total] of Object.entries(counts))
      if (typeof total === 'number') values.set(`${node.id} ${signal}`, total)
  for (const { node, dropped } of processors)
    for (const [signal, total] of dropped) values.set(`${node.id} ${signal}`, total)
  return values
}

/** Edges, signal by signal. */
class Graph {
  readonly edges: Edge[] = []
  readonly #rates: RecentRates

  constructor(rates: RecentRates) {
    this.#rates = rates
  }

  signal(
    signal: Signal,
    state: SignalQueueState,
    sources: readonly PipelineSource[],
    processors: readonly ProcessorNode[],
  ): void {
    const rates = this.#rates
    const passed = processors.filter(({ node }) => node.signals.includes(signal))
    const queue = `queue:${signal}`
    const first = passed[0]?.node.id ?? queue
    let rate = rates.rate(`${signal} collected`)
    this.#begin(signal, first, rate, sources)
    // Stages hand their output to the queue in batches, with a delay.
    const accepted = rates.rate(`${signal} accepted`)
    for (const [i, { node }] of passed.entries()) {
      rate = Math.max(0, rate - rates.rate(`${node.id} ${signal}`))
      const next = passed[i + 1]
      this.#add(signal, node.id, next?.node.id ?? queue, next === undefined ? accepted : rate)
    }
    this.#add(signal, queue, exporterIdOf(state), rates.rate(`${signal} exported`))
  }

  /** Items that no other source counts belong to the source that is the rest. */
  #begin(signal: Signal, to: string, collected: number, sources: readonly PipelineSource[]): void {
    const own = sources.filter(({ counts }) => counts[signal] !== undefined)
    let counted = 0
    for (const { node, counts } of own)
      if (counts[signal] !== 'rest') counted += this.#rates.rate(`${node.id} ${signal}`)
    for (const { node, counts } of own) {
      const rest = Math.max(0, collected - counted)
      this.#add(
        signal,
        node.id,
        to,
        counts[signal] === 'rest' ? rest : this.#rates.rate(`${node.id} ${signal}`),
      )
    }
  }

  #add(signal: Signal, from: string, to: string, rate: number): void {
    this.edges.push({ from, to, signal, per_s: rate })
  }
}
