// The rows of a waterfall. Only visible rows are rendered, so thousands of spans cost little.

import { useSignal } from '@preact/signals'
import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import { nameColour } from '../../lib/colour.ts'
import { duration } from '../../lib/format.ts'
import { type Drawn, gapText, oddityText, subjectOf } from './drawn.ts'
import { rowsOf, type Stretch } from './waterfall.ts'

const rowPx = 26
/** Rendered rows above and below the visible ones. */
const spare = 8
const indentPx = 12
/** Deeper levels are shown as a number. */
const deepest = 10
const ticks = [0, 0.25, 0.5, 0.75]

interface RowsProps {
  readonly drawn: Drawn
  readonly chosen: number
  readonly onChoose: (span: number) => void
}

export function WaterfallRows({ drawn, chosen, onChoose }: RowsProps) {
  const { tree, trace, path, gaps } = drawn
  const box = useRef<HTMLDivElement>(null)
  const id = useId()
  /** By ID: a span that arrives later moves those after it. */
  const closedIds = useSignal<ReadonlySet<string>>(new Set())
  const top = useSignal(0)
  const heightPx = useSignal(600)
  const closed = useMemo(
    () => new Set(tree.order.filter(i => closedIds.value.has(trace.spans[i]!.span_id))),
    [trace, tree, closedIds.value],
  )
  const rows = useMemo(() => rowsOf(tree, closed), [tree, closed])
  const paths = useMemo(() => bySpan(path), [path])
  const holes = useMemo(() => bySpan(gaps), [gaps])

  useEffect(() => {
    const element = box.current!
    const watch = new ResizeObserver(() => {
      heightPx.value = element.clientHeight
    })
    watch.observe(element)
    return () => watch.disconnect()
  }, [])
  useEffect(() => {
    // Scrolls to a span selected by key or link.
    const at = rows.indexOf(chosen)
    const element = box.current!
    if (at < 0) return
    const [above, below] = [at * rowPx, (at + 2) * rowPx - element.clientHeight]
    if (element.scrollTop > above) element.scrollTop = above
    else if (element.scrollTop < below) element.scrollTop = below
  }, [chosen])

  const turn = (span: number, open = closed.has(span)) => {
    const next = new Set(closedIds.value)
    const { span_id } = trace.spans[span]!
    if (open) next.delete(span_id)
    else next.add(span_id)
    closedIds.value = next
  }
  const pick = (span: number) => {
    onChoose(span)
    // The tree keeps the focus, because rows are removed while scrolling.
    box.current!.focus({ preventScroll: true })
  }
  const key = (event: KeyboardEvent) => {
    const at = Math.max(0, rows.indexOf(chosen))
    const page = Math.max(1, Math.floor(heightPx.value / rowPx) - 2)
    const parent = tree.parent[chosen] ?? -1
    const isClosed = closed.has(chosen)
    const leaf = (tree.children[chosen]?.length ?? 0) === 0
    const to = (row: number) => onChoose(rows[Math.max(0, Math.min(rows.length - 1, row))]!)
    const acts: Readonly<Record<string, () => void>> = {
      ArrowDown: () => to(at + 1),
      ArrowUp: () => to(at - 1),
      PageDown: () => to(at + page),
      PageUp: () => to(at - page),
      Home: () => to(0),
      End: () => to(rows.length - 1),
      ArrowRight: () => {
        if (isClosed) turn(chosen)
        else if (!leaf) to(at + 1)
      },
      ArrowLeft: () => {
        if (!leaf && !isClosed) turn(chosen)
        else if (parent >= 0) onChoose(parent)
      },
    }
    const act = acts[event.key]
    if (act === undefined || rows.length === 0 || event.altKey || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    act()
  }

  const from = Math.max(0, Math.floor(top.value / rowPx) - spare)
  const seen = rows.slice(from, from + Math.ceil(heightPx.value / rowPx) + 2 * spare)
  return (
    <>
      <div class="row">
        <button type="button" class="quiet" onClick={() => (closedIds.value = new Set())}>
          Expand all
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() =>
            (closedIds.value = new Set(
              tree.order
                .filter(i => tree.children[i]!.length > 0 && tree.depth[i]! > 0)
                .map(i => trace.spans[i]!.span_id),
            ))
          }
        >
          Collapse all
        </button>
      </div>
      <Axis durationMs={trace.duration_ms} />
      <div
        ref={box}
        class="waterfall"
        role="tree"
        tabIndex={0}
        aria-label="Spans. Up and down move, left and right collapse and expand."
        {...(seen.includes(chosen) && { 'aria-activedescendant': `${id}-${chosen}` })}
        onKeyDown={key}
        onScroll={event => {
          top.value = event.currentTarget.scrollTop
        }}
      >
        <div class="waterfall-all" role="presentation" style={{ height: `${rows.length * rowPx}px` }}>
          {seen.map((span, k) => (
            <Row
              key={span}
              id={`${id}-${span}`}
              drawn={drawn}
              at={span}
              row={from + k}
              rows={rows.length}
              chosen={span === chosen}
              closed={closed.has(span)}
              path={paths.get(span) ?? none}
              gaps={holes.get(span) ?? none}
              onChoose={pick}
              onTurn={turn}
            />
          ))}
        </div>
      </div>
    </>
  )
}

const none: readonly Stretch[] = []

function bySpan(stretches: readonly Stretch[]): ReadonlyMap<number, readonly Stretch[]> {
  const found = new Map<number, Stretch[]>()
  for (const each of stretches) {
    const list = found.get(each.span)
    if (list === undefined) found.set(each.span, [each])
    else list.push(each)
  }
  return found
}

function Axis({ durationMs }: { readonly durationMs: number }) {
  return (
    <div class="waterfall-axis" aria-hidden="true">
      <span />
      <span class="waterfall-ticks">
        {ticks.map(part => (
          <span key={part}>{duration(durationMs * part)}</span>
        ))}
      </span>
    </div>
  )
}

interface RowProps {
  readonly id: string
  readonly drawn: Drawn
  readonly at: number
  readonly row: number
  readonly rows: number
  readonly chosen: boolean
  readonly closed: boolean
  readonly path: readonly Stretch[]
  readonly gaps: readonly Stretch[]
  readonly onChoose: (span: number) => void
  readonly onTurn: (span: number) => void
}

function Row({ id, drawn, at, row, rows, chosen, closed, path, gaps, onChoose, onTurn }: RowProps) {
  const { tree, trace, critical } = drawn
  const span = tree.spans[at]!
  const depth = tree.depth[at]!
  const below = tree.size[at]! - 1
  const share = (ms: number) => (trace.duration_ms > 0 ? (ms / trace.duration_ms) * 100 : 0)
  const place = (from: number, to: number) => ({
    left: `${Math.max(0, Math.min(100, share(from)))}%`,
    width: `${Math.max(0, Math.min(100, share(to - from)))}%`,
  })
  const odd = oddityText(tree, at)
  const subject = subjectOf(span)
  const colour = nameColour(span.service)
  const startsAt = share(span.start_ms)
  const endsAt = startsAt + share(span.duration_ms)
  // The duration is written where there is space: after the bar, before it, or at its end.
  const labelStyle =
    endsAt < 80
      ? { left: `calc(${endsAt}% + 4px)` }
      : { right: `calc(${Math.max(0, 100 - (startsAt > 20 ? startsAt : endsAt))}% + 4px)` }
  const inside = endsAt >= 80 && startsAt <= 20
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: keys are those of the tree
    <div
      id={id}
      class={`span-row${chosen ? ' chosen' : ''}${span.error ? ' failed' : ''}`}
      role="treeitem"
      tabIndex={-1}
      aria-level={depth + 1}
      aria-posinset={row + 1}
      aria-setsize={rows}
      aria-selected={chosen}
      {...(below > 0 && { 'aria-expanded': !closed })}
      style={{ transform: `translateY(${row * rowPx}px)` }}
      onClick={() => onChoose(at)}
    >
      <span class="span-name" style={{ paddingLeft: `${Math.min(depth, deepest) * indentPx}px` }}>
        <span
          class={`span-turn${below > 0 ? ' turns' : ''}`}
          aria-hidden="true"
          onClick={event => {
            if (below === 0) return
            event.stopPropagation()
            onTurn(at)
          }}
        >
          {below > 0 ? (closed ? '▸' : '▾') : ''}
        </span>
        {depth > deepest ? <small class="soft">{depth} </small> : null}
        <span class="swatch" style={{ background: colour }} />
        {span.error ? (
          <b class="bad-text">
            <span aria-hidden="true">✕</span>
            <span class="unseen">failed</span>{' '}
          </b>
        ) : null}
        <bdi>{span.name}</bdi>{' '}
        <small class="soft">
          {subject === '' ? null : <bdi class="mono">{subject} · </bdi>}
          {odd !== '' ? `${odd} · ` : ''}
          {span.service} · {span.kind}
          {closed ? ` · ${below} collapsed` : ''}
        </small>
      </span>
      <span class="span-track">
        <span
          class={`span-bar${span.estimated_parent ? ' estimated' : ''}`}
          style={{ ...place(span.start_ms, span.start_ms + span.duration_ms), background: colour }}
        />
        {path.map(({ from, to }) => (
          <span key={from} class="span-critical" style={place(from, to)} />
        ))}
        {gaps.map(gap => (
          <span
            key={gap.from}
            class="span-gap"
            aria-hidden="true"
            style={place(gap.from, gap.to)}
            title={gapText(tree, gap)}
          >
            {duration(gap.to - gap.from)}
          </span>
        ))}
        <span class={`span-duration${inside ? ' inside' : ''}`} style={labelStyle}>
          {duration(span.duration_ms)}
          <span class="unseen">
            , starts at {duration(span.start_ms)}
            {critical.has(at) ? ', on the critical path' : ''}
          </span>
        </span>
      </span>
    </div>
  )
}
