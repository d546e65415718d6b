import { lostRecords, type PerfBuffer, ringEvents } from '../../signals/capture/capture.ts'
import { traces as part, untried, whyOff } from '../agent/kernel-parts.ts'
import type { Off } from '../agent/off.ts'
import { type MetricsOf, nested, value, values } from '../agent/self-metrics.ts'
import { fact, type State, type Subsystem } from '../agent/subsystem.ts'
import { startTracing, Tracing, type TracingFault } from '../agent/tracing.ts'
import { cpu } from './cpu.ts'
import { ebpf } from './ebpf.ts'
import { exporting } from './exporting.ts'
import { memory } from './memory.ts'
import { processes } from './processes.ts'

/** Undefined if disabled. */
export type Traces = Tracing | TracingFault | undefined

/** Metrics of the capture, besides those of the pipeline. */
const spanMetrics: MetricsOf<Traces> = {
  spans_collected_total: {
    collect: (own, emit) => {
      for (const [type, spans] of runningOf(own)?.collected ?? []) emit(spans, type)
    },
  },
  request_metrics_overflowed_total: value(
    'Calls counted in an overflow series, because there was no memory for their own.',
    own => runningOf(own)?.red.overflowed ?? 0,
  ),
  spans_joined_total: value(
    'Server spans joined to their client span on this host.',
    own => runningOf(own)?.tracer.joins.joined ?? 0,
  ),
  spans_unjoined_total: value(
    'Server spans that waited for a client span on this host and did not get one.',
    own => runningOf(own)?.tracer.joins.expired ?? 0,
  ),
  telemetry_exchanges_total: value(
    'Telemetry exports of other programs, which get no spans.',
    own => runningOf(own)?.tracer.telemetry ?? 0,
  ),
  process_memory_unread_total: nested(own => ({ tls: runningOf(own)?.tls?.unread })),
  share_losses_total: nested(own => {
    const { red, tls, routes } = runningOf(own) ?? {}
    return { request_metrics: red?.losses, tls_libraries: tls?.losses, routes: routes?.losses }
  }),
}

const captureMetrics: MetricsOf<Traces> = {
  ebpf_ringbuf_events_total: value(
    'Events read from the ring buffer.',
    own => ringEvents(runningOf(own)?.capture).received,
  ),
  ebpf_ringbuf_lost_total: value(
    'Events lost because the ring buffer was full.',
    own => ringEvents(runningOf(own)?.capture).lost,
  ),
  ebpf_ringbuf_absorbed_bytes_total: value(
    'Bytes of events moved from the ring buffer to memory because they were not read in time.',
    own => runningOf(own)?.capture.backlog.absorbedBytes ?? 0,
  ),
  ebpf_ringbuf_backlog_bytes: value(
    'Current memory of events moved out of the ring buffer.',
    own => runningOf(own)?.capture.backlog.heldBytes ?? 0,
  ),
  ebpf_ringbuf_backlog_peak_bytes: value(
    'Largest memory of events moved out of the ring buffer, since the start.',
    own => runningOf(own)?.capture.backlog.peakBytes ?? 0,
  ),
  ebpf_perf_events_total: values(
    'cpu',
    'Events read from perf buffers, which replace the ring buffer before Linux 5.8.',
    own => perf(own, ({ received }) => received),
  ),
  ebpf_perf_lost_total: values('cpu', 'Events lost because a perf buffer was full.', own =>
    perf(own, ({ lost }) => lost),
  ),
  ebpf_capture_total: values('event', 'Counters of the kernel side of the capture, by event.', own =>
    runningOf(own)?.capture.counters(),
  ),
}

export const traces: Subsystem<Traces> = {
  name: 'traces',
  keys: ['agent.ebpf'],
  banner: 'always',
  source: { id: 'requests', name: 'requests (eBPF)', signal: 'traces' },
  needs: part,
  create: agent => {
    const { config, events } = agent
    if (whyOff(part, config) !== undefined) return undefined
    const pipelines = agent.of(exporting)
    const tracing = startTracing({
      config,
      pipeline: pipelines.pipeline,
      processes: agent.of(processes).processes,
      log: agent.of(ebpf).log,
      edge: request => events.edges.report(request),
      governor: agent.of(memory).governor,
    })
    if (!(tracing instanceof Tracing)) return tracing
    const { governor } = agent.of(cpu)
    governor.register('spans', tracing.budget)
    if (tracing.tls !== undefined) governor.register('tls', tracing.tls.lever)
    pipelines.earlySpans = () => tracing.tracer.joins.waitingNow
    return tracing
  },
  stop: own => runningOf(own)?.stop(),
  close: own => runningOf(own)?.close(),
  prepare: (own, config) => runningOf(own)?.prepare(config),
  checks: own => ({
    'capture programs':
      own instanceof Tracing
        ? { ok: `programs of the back end "${own.capture.backend.name}" are loaded and attached` }
        : untried(own?.reason ?? 'tracing is off', part.topic),
  }),
  state: (own, config) => {
    if (!(own instanceof Tracing)) return stateWithout(own, whyOff(part, config))
    const { capture, tracer, protocols, streams, limits, red } = own
    const { backend, socketsFound } = capture
    return {
      state: 'ok',
      detail: `${protocols} protocols of every process, by ${backend.name}; ${socketsFound} sockets were already open`,
      faults: limits,
      measures: () => [fact('request series', red.series)],
      items: 'rest',
      facts: () => {
        const counters = capture.counters()
        return [
          fact('back end', backend.name),
          fact('protocols', protocols),
          fact('connections decoded in user space', streams.size),
          fact('unrecognised connections', counters.not_recognised),
          fact('exchanges over the span budget', counters.over_budget),
          fact('records lost, buffer full', lostRecords(counters)),
          fact('calls of unselected processes', tracer.unselected),
        ]
      },
    }
  },
  sync: own => runningOf(own)?.sync(),
  metrics: { ...spanMetrics, ...captureMetrics },
}

/** Undefined unless it runs. */
export function runningOf(own: Traces): Tracing | undefined {
  return own instanceof Tracing ? own : undefined
}

function stateWithout(fault: TracingFault | undefined, off: Off | undefined): State {
  if (fault === undefined) return off ?? { state: 'off' }
  const { reason, hint } = fault
  return { state: 'failed', faults: [{ subsystem: part.subsystem, reason, hint, fails: 'ebpf' }] }
}

function perf(own: Traces, read: (buffer: PerfBuffer) => number): (readonly [string, number])[] {
  const { perfBuffers = [] } = runningOf(own)?.capture ?? {}
  return perfBuffers.map(buffer => [String(buffer.cpu), read(buffer)] as const)
}
