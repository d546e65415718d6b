import type { MapLine } from '../../view/api/ui/documents.ts'
import type { Live } from '../../view/api/ui/source.ts'
import { type Call, type CallNode, callGraph, errorsPercent, localNames, together } from './call-graph.ts'
import type { DocumentContext } from './document-context.ts'
import { durationMs, percentilesOf, rounded } from './percentiles.ts'
import { tracingOff } from './why-no-tracing.ts'

/** Maximum number of edges in a line; the rarest are omitted. */
const mostEdges = 1000

/** Calls between services. */
export function map(parts: DocumentContext, seconds: number): Live<MapLine> {
  return {
    everyMs: 2000,
    next: async () => {
      await localNames(parts).ready()
      return [mapLine(parts, seconds)]
    },
  }
}

function mapLine(parts: DocumentContext, seconds: number): MapLine {
  const { edges } = parts.window
  const parties = [...callGraph(edges, localNames(parts), seconds).values()]
  const calls = parties.flatMap(({ asks }) => asks).sort((a, b) => b.figures.perSecond - a.figures.perSecond)
  const shown = calls.slice(0, mostEdges)
  const named = new Set(shown.flatMap(({ from, to }) => [from, to]))
  return {
    at_ms: Date.now(),
    seconds,
    nodes: parties.filter(party => named.has(party)).map(nodeOf),
    edges: shown.map(edgeOf),
    omitted: calls.length - shown.length + edges.leftOut,
    lost: edges.lost,
    no_data_reason: calls.length === 0 ? tracingOff(parts) : '',
  }
}

function nodeOf({ id, name, namespace, kind, asks, answers }: CallNode): MapLine['nodes'][number] {
  const answered = together(answers)
  return {
    id,
    name,
    namespace,
    kind,
    probe: answers.length === 0 && asks.every(({ probe }) => probe),
    requests_per_s: rounded(answered.perSecond),
    errors_percent: errorsPercent(answered),
    p95_ms: durationMs(answered.durations, 0.95),
  }
}

function edgeOf({ from, to, protocol, figures }: Call): MapLine['edges'][number] {
  return {
    from: from.id,
    to: to.id,
    protocol,
    requests_per_s: rounded(figures.perSecond),
    errors_percent: errorsPercent(figures),
    ...percentilesOf(figures.durations),
  }
}
