// The fate of spans, counted for all processes together.

import type { Tracing } from '../agent/tracing.ts'
import type { DocumentContext } from './document-context.ts'
import { type Cause, type Finding, rateReasons } from './explain-types.ts'
import { degradations } from './view.ts'

/** A kind of loss with its own cause. */
interface Loss {
  readonly cause: Cause
  readonly items: number
  readonly text: string
  readonly hint: string
}

/** Least share of all spans for a loss to be a cause; a short loss long ago does not matter. */
const leastShare = 0.01
/** Above this fill level a queue drops new items, or soon will. */
const nearlyFull = 0.5

export function spanFindings(parts: DocumentContext, tracing: Tracing): Finding[] {
  if (!parts.stopping()) tracing.sync()
  const state = parts.pipelines.pipeline.state('traces')
  const waiting = parts.pipelines.waiting('traces')
  const { sampled = 0, ...others } = Object.fromEntries(state.dropped)
  const made = state.collected + waiting - state.queued
  const kept = made - sampled
  const dropped = Object.entries(others).filter(([, items]) => items > 0)
  const lost = dropped.map(([reason, items]) => `${items} ${reason}`).join(', ')
  const books: Finding = {
    topic: 'spans',
    state: lost === '' ? 'ok' : 'note',
    text: `all services since the start: ${made} made → ${kept} kept by sampling → ${state.exported} exported, ${waiting} queued, ${lost === '' ? '0' : lost} dropped${state.rejected > 0 ? `, ${state.rejected} rejected by the receiver` : ''}`,
    hint: '',
  }
  const losses = lossesOf(parts, state.dropped).sort((a, b) => b.items - a.items)
  const isCause = (items: number) => items >= leastShare * made
  return [
    books,
    ...losses.map(({ cause, items, text, hint }) => ({
      topic: 'spans',
      state: isCause(items) ? ('limited' as const) : ('note' as const),
      text,
      hint,
      ...(isCause(items) && { cause }),
    })),
  ]
}

function lossesOf(parts: DocumentContext, dropped: ReadonlyMap<string, number>): Loss[] {
  const { config } = parts.loaded()
  const { sampling } = config.agent.ebpf.network
  const of = (...reasons: readonly string[]) =>
    reasons.reduce((sum, reason) => sum + (dropped.get(reason) ?? 0), 0)
  const sampled = of('sampled')
  const overBudget = of(...rateReasons.budget)
  const ringFull = of(...rateReasons.ring)
  const uncounted = of(...rateReasons.totals)
  const noRoom = of(...rateReasons.perfBuffer)
  const limited = of(...rateReasons.limit)
  const path = 'agent.ebpf.network.sampling'
  const losses: Loss[] = [
    {
      cause: 'sampled',
      items: sampled,
      text: `${sampled} spans dropped by sampling: ${path}.ratio is ${sampling.ratio}; metrics still count them`,
      hint: `raise ${path}.ratio; 1 keeps all`,
    },
    {
      cause: 'rate_limited',
      items: overBudget,
      text: `${overBudget} spans dropped: over the limit ${path}.max_spans_per_second (${sampling.max_spans_per_second}); metrics still count them`,
      hint: `raise ${path}.max_spans_per_second`,
    },
    {
      cause: 'rate_limited',
      items: ringFull,
      text: `${ringFull} spans dropped: a burst was larger than the ring buffer (agent.ebpf.ringbuf_size) and the memory behind it`,
      hint: 'give svc more CPU, or raise agent.ebpf.ringbuf_size',
    },
    {
      cause: 'rate_limited',
      items: uncounted,
      text: `${uncounted} calls dropped: the kernel table of totals was full; metrics lack them, too`,
      hint: `raise ${path}.max_spans_per_second and agent.ebpf.ringbuf_size`,
    },
    {
      cause: 'rate_limited',
      items: noRoom,
      text: `${noRoom} spans dropped: a burst was larger than agent.ebpf.perf_buffer_size (${config.agent.ebpf.perf_buffer_size}) of a CPU`,
      hint: 'raise agent.ebpf.perf_buffer_size, or give svc more CPU',
    },
    {
      cause: 'rate_limited',
      items: limited,
      text: `${limited} spans dropped: over the limit pipeline.limits.rate.traces_per_second (${config.pipeline.limits.rate.traces_per_second})`,
      hint: 'raise pipeline.limits.rate.traces_per_second',
    },
  ]
  // Spans sampled before a reload do not matter now.
  return losses.filter(({ cause, items }) => items > 0 && (cause !== 'sampled' || sampling.ratio < 1))
}

/** Export of traces. */
export function exportFindings(parts: DocumentContext): Finding[] {
  const topic = 'export'
  const { pipelines } = parts
  const { pipeline } = pipelines
  const { destination, dropped, queued } = pipeline.state('traces')
  const fault = pipelines.faults.find(({ signal }) => signal === 'traces')
  if (fault !== undefined)
    return [{ topic, state: 'missing', text: fault.reason, hint: fault.hint, cause: 'endpoint_down' }]
  if (destination === undefined)
    return [
      {
        topic,
        state: 'note',
        text: 'no exporter configured: traces stay on this host',
        hint: 'set otlp.endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT',
      },
    ]
  const { endpoint, lastError, lastWarning, nextAttemptMs, lastExportMs } = destination
  const full = dropped.get('queue_full') ?? 0
  const findings: Finding[] = []
  if (full > 0 && (lastError !== null || pipeline.fill('traces') >= nearlyFull))
    findings.push({
      topic,
      state: 'limited',
      text: `the queue is full: ${full} spans were dropped, and ${queued} are waiting`,
      hint:
        lastError === null
          ? 'raise queues.traces.mem_limit or otlp.traces.concurrency: the receiver is slower than the incoming data'
          : 'fix the endpoint; to buffer longer, raise queues.traces.mem_limit, or queue on disk with pipeline.export.queue',
      cause: 'queue_full',
    })
  if (lastError !== null) {
    const again = nextAttemptMs === null ? '' : `; next attempt at ${new Date(nextAttemptMs).toISOString()}`
    const hint =
      degradations(parts.faults()).find(({ subsystem }) => subsystem === 'export of traces')?.hint ??
      'svc doctor export'
    findings.push({
      topic,
      state: 'missing',
      text: `export to ${endpoint} failed: ${lastError}${again}`,
      hint,
      cause: 'endpoint_down',
    })
  }
  if (findings.length > 0) return findings
  if (lastWarning !== null)
    return [{ topic, state: 'limited', text: `${endpoint} reports: ${lastWarning}`, hint: '' }]
  const last =
    lastExportMs === null ? 'nothing exported yet' : `last export at ${new Date(lastExportMs).toISOString()}`
  return [{ topic, state: 'ok', text: `to ${endpoint}, ${last}`, hint: '' }]
}
