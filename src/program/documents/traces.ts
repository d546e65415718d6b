// The traces in the window.

import type { AttributeValue } from '../../foundation/model/attributes.ts'
import { SpanKind } from '../../foundation/model/span.ts'
import type { TraceDocument, TracesLine } from '../../view/api/ui/documents.ts'
import type { Live, TracesQuery } from '../../view/api/ui/source.ts'
import type { Heatmap } from '../../view/window/latency-heatmap.ts'
import type { FoundTrace, StoredTrace } from '../../view/window/span-search.ts'
import type { DocumentContext } from './document-context.ts'
import type { ShownText } from './shown-text.ts'
import { tracingOff } from './why-no-tracing.ts'

const everyMs = 2000
/** Maximum number of spans of one trace. */
const mostSpans = 500
const mostServices = 500

const keptFor = ['recent', 'example', 'slow', 'error'] as const

type Kind = TraceDocument['spans'][number]['kind']
const kinds: Readonly<Record<SpanKind, Kind>> = {
  [SpanKind.internal]: 'internal',
  [SpanKind.server]: 'server',
  [SpanKind.client]: 'client',
  [SpanKind.producer]: 'producer',
  [SpanKind.consumer]: 'consumer',
}

/** A line whenever spans are added or removed. */
export function traces(parts: DocumentContext, query: TracesQuery): Live<TracesLine> {
  let sentState = ''
  return {
    everyMs,
    next() {
      const { spans } = parts.window
      const off = whyNone(parts)
      const heatmap = spans.heatmap()
      const state = `${spans.seen} ${heatmap.fromMs} ${off}`
      if (state === sentState) return []
      sentState = state
      return [lineOf(parts, query, heatmap, off)]
    },
  }
}

/** The retained part of one trace. */
export function trace(parts: DocumentContext, id: string): TraceDocument | undefined {
  const found = parts.window.spans.trace(id, mostSpans)
  return found && documentOf(parts, found)
}

function lineOf(
  { window, shown }: DocumentContext,
  query: TracesQuery,
  heatmap: Heatmap,
  off: string,
): TracesLine {
  const { spans } = window
  const { fromMs, stepMs, columns, boundsMs, counts, errors } = heatmap
  const found = spans.find({
    service: query.service,
    errors: query.errors,
    minMs: query.min_ms,
    maxMs: query.max_ms,
    sinceMs: query.since_ms,
    untilMs: query.until_ms,
    text: query.q,
    shown,
    sort: query.sort,
    limit: query.limit,
  })
  return {
    from_ms: fromMs,
    to_ms: fromMs + columns * stepMs,
    heatmap: { step_ms: stepMs, columns, bounds_ms: boundsMs, counts, errors },
    traces: found.traces.map(each => listed(each, shown)),
    services: spans.services().slice(0, mostServices),
    matched: found.matched,
    spans_seen: spans.seen,
    spans_retained: found.spans,
    no_data_reason: off,
  }
}

function listed(
  { traceId, name, service, services, startUs, endUs, spans, errors, interest }: FoundTrace,
  shown: ShownText,
): TracesLine['traces'][number] {
  return {
    trace_id: traceId,
    name: shown(name),
    service,
    services,
    start_ms: startUs / 1000,
    duration_ms: Math.max(0, endUs - startUs) / 1000,
    spans,
    errors,
    retained: keptFor[interest],
  }
}

function documentOf({ shown }: DocumentContext, found: StoredTrace): TraceDocument {
  const { traceId, startUs, endUs, origins, spans, leftOut } = found
  return {
    trace_id: traceId,
    start_ms: startUs / 1000,
    duration_ms: Math.max(0, endUs - startUs) / 1000,
    resources: origins.map(({ attributes }) =>
      shownAttributes(JSON.parse(attributes) as Record<string, AttributeValue>, shown),
    ),
    spans: spans.map(span => ({
      span_id: span.spanId,
      parent_id: span.parentId,
      estimated_parent: span.parentInferred,
      name: shown(span.name),
      kind: kinds[span.kind] ?? 'internal',
      resource: span.origin,
      service: origins[span.origin]!.service,
      pid: origins[span.origin]!.pid,
      start_ms: (span.startUs - startUs) / 1000,
      duration_ms: Math.max(0, span.endUs - span.startUs) / 1000,
      error: span.failed,
      status_message: shown(span.statusMessage),
      attributes: shownAttributes(span.attributes, shown),
    })),
    omitted: leftOut,
  }
}

function shownAttributes(
  attributes: Readonly<Record<string, AttributeValue>>,
  shown: ShownText,
): Record<string, AttributeValue> {
  const copy: Record<string, AttributeValue> = Object.create(null)
  for (const key of Object.keys(attributes)) {
    const value = attributes[key]!
    if (typeof value === 'string') copy[key] = shown(value, key)
    else copy[key] = typeof value === 'object' ? value.map(each => shown(each, key)) : value
  }
  return copy
}

/** Why there are no spans and will be none, with the fix. */
function whyNone(parts: DocumentContext): string {
  if (parts.window.spans.seen > 0) return ''
  const off = tracingOff(parts)
  if (off !== '') return off
  const { ratio, always_errors, always_slow } = parts.loaded().config.agent.ebpf.network.sampling
  return ratio > 0 || always_errors || always_slow
    ? ''
    : 'Requests are counted, but no traces are kept: agent.ebpf.network.sampling.ratio is 0; set it to 1.'
}
