// The data of a waterfall, computed from the spans of a trace: hierarchy, critical path, gaps. Spans are foreign:
// parents may be missing or form cycles, and clocks may differ.

import type { TraceDocument } from '../../../src/view/api/ui/documents.ts'

export type Span = TraceDocument['spans'][number]

/** A problem with a span's position. `lost`: its parent is missing. `early`: it starts before its parent. */
export type Oddity = '' | 'lost' | 'circle' | 'early'

/** Spans as a tree, by their index in the document. */
export interface Tree {
  readonly spans: readonly Span[]
  /** -1: none. */
  readonly parent: Int32Array
  readonly children: readonly (readonly number[])[]
  readonly depth: Int32Array
  /** Number of spans in the subtree of each span. */
  readonly size: Int32Array
  /** Parents before their children, earliest first. */
  readonly order: readonly number[]
  readonly oddity: readonly Oddity[]
}

/** A period, in milliseconds since the trace began. */
export interface Stretch {
  /** Index of a span; -1: none. */
  readonly span: number
  readonly from: number
  readonly to: number
}

/** Clock resolution of a host. */
const toleranceMs = 0.01

export function treeOf(spans: readonly Span[]): Tree {
  const count = spans.length
  const byId = new Map<string, number>()
  for (let i = count - 1; i >= 0; i--) byId.set(spans[i]!.span_id, i)
  const parent = new Int32Array(count)
  const oddity: Oddity[] = []
  for (const [i, { parent_id }] of spans.entries()) {
    parent[i] = parent_id === '' ? -1 : (byId.get(parent_id) ?? -1)
    oddity.push(parent_id !== '' && parent[i] === -1 ? 'lost' : '')
  }
  openCircles(parent, oddity)

  const children: number[][] = spans.map(() => [])
  const roots: number[] = []
  for (let i = 0; i < count; i++) (parent[i]! < 0 ? roots : children[parent[i]!]!).push(i)
  const byStart = (a: number, b: number) => spans[a]!.start_ms - spans[b]!.start_ms || a - b
  for (const each of children) each.sort(byStart)
  roots.sort(byStart)

  const depth = new Int32Array(count)
  const order: number[] = []
  const rest = roots.reverse()
  for (let i = rest.pop(); i !== undefined; i = rest.pop()) {
    order.push(i)
    const above = parent[i]!
    if (above >= 0) {
      depth[i] = depth[above]! + 1
      if (spans[i]!.start_ms < spans[above]!.start_ms - toleranceMs) oddity[i] = 'early'
    }
    const below = children[i]!
    for (let k = below.length - 1; k >= 0; k--) rest.push(below[k]!)
  }
  const size = new Int32Array(count).fill(1)
  for (let k = order.length - 1; k >= 0; k--) {
    const i = order[k]!
    if (parent[i]! >= 0) size[parent[i]!]! += size[i]!
  }
  return { spans, parent, children, depth, size, order, oddity }
}

/** Breaks each cycle of parents at its earliest span. */
function openCircles(parent: Int32Array, oddity: Oddity[]): void {
  /** 0: not visited; otherwise the walk that visited it. */
  const seen = new Int32Array(parent.length)
  for (let start = 0; start < parent.length; start++) {
    let i = start
    while (i >= 0 && seen[i] === 0) {
      seen[i] = start + 1
      i = parent[i]!
    }
    if (i < 0 || seen[i] !== start + 1) continue
    let earliest = i
    for (let each = parent[i]!; each !== i; each = parent[each]!) earliest = Math.min(earliest, each)
    parent[earliest] = -1
    oddity[earliest] = 'circle'
  }
}

const endOf = ({ start_ms, duration_ms }: Span) => start_ms + duration_ms

/**
 * The critical path, earliest part first: followed back from the end of the trace, each time along the span that ended
 * last. A span that outlives its parent belongs to the next ancestor that lasts as long.
 */
export function criticalPath(tree: Tree, durationMs: number): readonly Stretch[] {
  const { spans } = tree
  const waiting = waitingFor(tree)
  const place = new Int32Array(spans.length)
  for (const [k, i] of tree.order.entries()) place[i] = k
  const isAbove = (a: number, b: number) => place[b]! > place[a]! && place[b]! < place[a]! + tree.size[a]!

  const path: Stretch[] = []
  const emit = (span: number, from: number, to: number) => {
    if (span >= 0 && to > from) path.push({ span, from, to })
  }
  const stack = [{ span: -1, from: 0, now: durationMs, next: 0, last: -1 }]
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    const kids = waiting[frame.span + 1]!
    let chosen = -1
    let end = 0
    let began = false
    while (chosen < 0 && frame.next < kids.length) {
      const each = kids[frame.next++]!
      end = endOf(spans[each]!)
      // A span that was still running when the last one started was not waited for, unless it started that one.
      began = frame.last >= 0 && isAbove(each, frame.last)
      const endsInTime = began || end <= frame.now + toleranceMs
      end = Math.min(end, frame.now)
      if (endsInTime && end > Math.max(spans[each]!.start_ms, frame.from)) chosen = each
    }
    if (chosen < 0) {
      emit(frame.span, frame.from, frame.now)
      stack.pop()
      continue
    }
    emit(frame.span, end, frame.now)
    const from = Math.max(spans[chosen]!.start_ms, frame.from)
    frame.now = from
    stack.push({ span: chosen, from, now: end, next: 0, last: began ? frame.last : -1 })
    frame.last = chosen
  }
  return path.reverse()
}

/** By span plus one (0: the trace itself), the spans that it waits for, last to end first. */
function waitingFor({ spans, parent, order }: Tree): readonly (readonly number[])[] {
  const longer = new Int32Array(spans.length)
  const waiting: number[][] = Array.from({ length: spans.length + 1 }, () => [])
  for (const i of order) {
    const end = endOf(spans[i]!)
    let above = parent[i]!
    while (above >= 0 && endOf(spans[above]!) < end) above = longer[above]!
    longer[i] = above
    waiting[above + 1]!.push(i)
  }
  for (const each of waiting) each.sort((a, b) => endOf(spans[b]!) - endOf(spans[a]!) || b - a)
  return waiting
}

/** Share of the trace from which a gap is mentioned. */
const gapShare = 0.1

/** Periods without a running call: within the innermost running span, or within none. */
export function gapsOf(tree: Tree, durationMs: number): readonly Stretch[] {
  const { spans, children, depth } = tree
  if (spans.length < 2 || durationMs <= 0) return []
  const running = new Map<number, Set<number>>()
  let deepest = -1
  let leaves = 0
  const gaps: Stretch[] = []
  let open = { span: -1, from: 0 }
  const close = (to: number) => {
    if (to - open.from > durationMs * gapShare) gaps.push({ ...open, to })
  }
  for (const { at, span, begins } of turnsOf(spans)) {
    const before = leaves > 0 ? undefined : innermost()
    if (children[span]!.length === 0) leaves += begins ? 1 : -1
    const level = depth[span]!
    const peers = running.get(level) ?? new Set()
    running.set(level, peers)
    if (begins) peers.add(span)
    else peers.delete(span)
    if (begins) deepest = Math.max(deepest, level)
    while (deepest >= 0 && (running.get(deepest)?.size ?? 0) === 0) deepest--
    const after = leaves > 0 ? undefined : innermost()
    if (before === after) continue
    if (before !== undefined) close(at)
    if (after !== undefined) open = { span: after, from: at }
  }
  if (leaves === 0) close(durationMs)
  return gaps

  /** -1: nothing runs. */
  function innermost(): number {
    for (const span of running.get(deepest) ?? []) return span
    return -1
  }
}

/** Starts and ends of spans, in order of time; at equal times, ends come first. */
function turnsOf(spans: readonly Span[]) {
  return spans
    .flatMap((each, span) => [
      { at: each.start_ms, span, begins: true },
      { at: endOf(each), span, begins: false },
    ])
    .filter(({ span }) => spans[span]!.duration_ms > 0)
    .sort((a, b) => a.at - b.at || Number(a.begins) - Number(b.begins))
}

/** Visible spans in order: all except those below collapsed ones. */
export function rowsOf({ order, size }: Tree, closed: ReadonlySet<number>): readonly number[] {
  if (closed.size === 0) return order
  const rows: number[] = []
  for (let k = 0; k < order.length; ) {
    const i = order[k]!
    rows.push(i)
    k += closed.has(i) ? size[i]! : 1
  }
  return rows
}

/** Time of a span without any of its children, in milliseconds. */
export function selfMs({ spans, children }: Tree, i: number): number {
  const span = spans[i]!
  let busyUntil = span.start_ms
  let self = 0
  for (const child of children[i]!) {
    const { start_ms } = spans[child]!
    const from = Math.min(endOf(span), start_ms)
    if (from > busyUntil) self += from - busyUntil
    busyUntil = Math.max(busyUntil, Math.min(endOf(span), endOf(spans[child]!)))
  }
  return self + Math.max(0, endOf(span) - busyUntil)
}
