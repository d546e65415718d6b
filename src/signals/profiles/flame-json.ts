import type { FlameGraph } from './flame-graph.ts'
import { frameTypes } from './flame-tree.ts'

/** Values per part. */
const stride = 1024

/** Flame graph as the JSON document of the management API, in parts. Times are whole microseconds. */
export function* jsonParts(graph: FlameGraph): Generator<string> {
  const { tree } = graph
  const head = {
    title: graph.title,
    kind: graph.kind,
    unit: graph.unit,
    start: new Date(graph.startUs / 1000).toISOString(),
    duration_ms: Math.round(graph.durationUs / 1000),
    sample_rate: graph.rate,
    samples: graph.samples,
    total: tree.total[0]!,
    unnamed: tree.unnamed,
    busy_ns: Math.round(graph.busyNs),
    idle_ns: Math.round(graph.idleNs),
    lost_samples: graph.lostSamples,
    processes: graph.processes.map(each => ({ ...each, value: Math.round(each.value) })),
    types: frameTypes,
  }
  yield `${JSON.stringify(head).slice(0, -1)},"strings":`
  yield* arrayParts(tree.strings)
  yield ',"nodes":{'
  const columns = ['parent', 'name', 'file', 'type', 'self', 'total'] as const
  for (const [i, column] of columns.entries()) {
    yield `${i === 0 ? '' : ','}"${column}":`
    yield* arrayParts(tree[column])
  }
  yield '}}\n'
}

function* arrayParts(values: ArrayLike<string | number>): Generator<string> {
  yield '['
  for (let at = 0; at < values.length; at += stride) {
    const text = JSON.stringify(Array.prototype.slice.call(values, at, at + stride))
    yield `${at === 0 ? '' : ','}${text.slice(1, -1)}`
  }
  yield ']'
}
