// The records, newest at the bottom. Scrolling up stops the updates; new records are counted until the user returns.

import { useSignal } from '@preact/signals'
import { Component } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { exactTime, time, whole } from '../../lib/format.ts'
import { hrefOf, parameter, setParameters } from '../../lib/route.ts'
import { Copy } from '../../parts/copy.tsx'
import { ServiceLink } from '../../parts/small.tsx'
import { type Fold, folded, type LogRecord, unfolded } from './fold.ts'
import { levelOf } from './tail.ts'

/** Maximum number of rendered rows. */
const mostRows = 250
/** Distance that counts as the bottom. */
const nearPx = 4

interface Held {
  readonly records: readonly LogRecord[]
  /** Index after the last rendered row; undefined: all newer rows are rendered. */
  readonly end: number | undefined
}

export function Records({
  records,
  skipped,
}: {
  readonly records: readonly LogRecord[]
  readonly skipped: number
}) {
  const box = useRef<HTMLOListElement>(null)
  const held = useSignal<Held | undefined>(undefined)
  const turned = useRef<'top' | 'bottom' | 'open' | undefined>(undefined)
  const [fold, wrap] = [parameter('fold') === '1', parameter('wrap') === '1']
  const open = Number(parameter('record', '-1'))
  const read = held.value?.records ?? records
  const rows = useMemo(() => (fold ? folded(read) : unfolded(read)), [read, fold])
  const end = Math.min(held.value?.end ?? rows.length, rows.length)
  const first = Math.max(0, end - mostRows)
  const shown = rows.slice(first, end)
  const news = held.value === undefined ? 0 : newsOf(records, read)

  useLayoutEffect(() => {
    const element = box.current!
    if (held.peek() === undefined || turned.current === 'bottom') element.scrollTop = element.scrollHeight
    else if (turned.current === 'top') element.scrollTop = 0
    else if (turned.current === 'open')
      element.querySelector('[aria-expanded="true"]')?.scrollIntoView({ block: 'nearest' })
    turned.current = undefined
  })

  const hold = (to?: number) => {
    held.value = { records: read, end: to ?? held.value?.end }
  }
  /** Moves the rendered range, starting at its near end. */
  const leaf = (to: number, earlier: boolean) => {
    hold(to)
    turned.current = earlier ? 'bottom' : 'top'
  }
  useEffect(() => {
    // Scrolls to a linked record.
    const at = open < 0 ? -1 : rows.findIndex(row => row.record.id === open || row.first.id === open)
    if (at < 0) return
    turned.current = 'open'
    hold(Math.min(rows.length, Math.max(mostRows, at + mostRows / 2)))
  }, [])
  const jump = () => {
    held.value = undefined
    box.current!.focus()
  }
  const scrolled = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!
    const atBottom = scrollHeight - scrollTop - clientHeight <= nearPx
    if (!atBottom && held.value === undefined) hold()
    else if (atBottom && held.value !== undefined && end === rows.length && open < 0) held.value = undefined
  }
  const turn = (id: number) => {
    hold()
    setParameters({ record: id === open ? '' : id })
  }
  return (
    <section class="card stack" aria-label="Log records">
      <h2 class="unseen">Log records</h2>
      <div class="row">
        <p class="note grow">
          {whole(read.length)} records{fold ? `, ${whole(rows.length)} rows` : ''}, newest at the bottom
          {skipped > 0 ? `; ${whole(skipped)} skipped, as they came too fast to show` : ''}.
        </p>
        {held.value === undefined ? (
          <span class="soft">Live</span>
        ) : (
          <button type="button" onClick={jump}>
            {news > 0 ? `Show ${whole(news)} new ↓` : 'Jump to newest ↓'}
          </button>
        )}
      </div>
      {first > 0 ? (
        <button type="button" class="quiet" onClick={() => leaf(Math.max(mostRows, first), true)}>
          Show earlier rows ({whole(first)})
        </button>
      ) : null}
      <ol
        ref={box}
        class={`records${wrap ? ' wrap' : ''}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
        tabIndex={0}
        aria-label="Log records, newest at the bottom. Up and down move, Enter opens one."
        onScroll={scrolled}
        onKeyDown={move}
      >
        {shown.map(row => (
          <RecordRow
            key={row.first.id}
            row={row}
            open={row.record.id === open || row.first.id === open}
            onTurn={turn}
          />
        ))}
      </ol>
      {end < rows.length ? (
        <button
          type="button"
          class="quiet"
          onClick={() => leaf(Math.min(rows.length, end + mostRows), false)}
        >
          Show later rows ({whole(rows.length - end)})
        </button>
      ) : null}
    </section>
  )
}

/** Number of records added since reading began. */
function newsOf(records: readonly LogRecord[], read: readonly LogRecord[]): number {
  const last = read.at(-1)?.id ?? -1
  // Numbers restart with the agent.
  if ((records.at(-1)?.id ?? -1) < last) return records.length
  let news = 0
  for (let i = records.length - 1; i >= 0 && records[i]!.id > last; i--) news++
  return news
}

/** Up and down move between rows, and enter the list from below. */
function move(event: KeyboardEvent): void {
  const list = event.currentTarget as HTMLElement
  const row = (event.target as Element).closest('li')
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key]
  if (step === undefined) return
  const next =
    row === null
      ? step < 0 && list.lastElementChild
      : step < 0
        ? row.previousElementSibling
        : row.nextElementSibling
  if (!next) return
  event.preventDefault()
  next.querySelector<HTMLElement>('button')?.focus()
}

interface RowProps {
  readonly row: Fold
  readonly open: boolean
  readonly onTurn: (id: number) => void
}

/** A row changes only when records are folded into it; all others are not rendered again. */
class RecordRow extends Component<RowProps> {
  override shouldComponentUpdate({ row, open }: RowProps): boolean {
    return (
      row.record !== this.props.row.record || row.count !== this.props.row.count || open !== this.props.open
    )
  }

  render({ row, open, onTurn }: RowProps) {
    const { record, count } = row
    const level = levelOf(record.severity)
    return (
      <li class={`record ${level}`}>
        <button type="button" tabIndex={-1} aria-expanded={open} onClick={() => onTurn(record.id)}>
          <span class="record-time mono">{exactTime(record.time_ms)}</span>
          <span class="record-level">{level}</span>
          <span class="record-service">{record.service}</span>
          <span class="record-body mono">
            {count > 1 ? <b class="record-count">×{whole(count)} </b> : null}
            <bdi>{plain(record.body)}</bdi>
          </span>
        </button>
        {record.trace_id === '' ? null : (
          <a
            class="record-trace"
            href={traceLink(record)}
            tabIndex={-1}
            aria-label="Show the trace of this record"
          >
            trace
          </a>
        )}
        {open ? <Details row={row} /> : null}
      </li>
    )
  }
}

function traceLink({ trace_id, span_id }: LogRecord): string {
  return hrefOf('traces', { trace: trace_id, span: span_id })
}

/** Removes terminal colours. */
function plain(body: string): string {
  return body.includes('\u001b[') ? body.replace(/\u001b\[[0-9;]{0,20}m/g, '') : body
}

/** JSON is easier to read on several lines. */
function spread(body: string): string {
  if (!/^\s*[[{]/.test(body)) return plain(body)
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    // Cut off, or not really JSON.
    return plain(body)
  }
}

function Details({ row: { record, first, count } }: { readonly row: Fold }) {
  return (
    <div class="record-details stack">
      <pre dir="auto">{spread(record.body)}</pre>
      <dl class="facts">
        {count > 1 ? (
          <>
            <dt>Duplicates</dt>
            <dd>
              {whole(count)} since {time(first.time_ms)}; this is the latest
            </dd>
          </>
        ) : null}
        <dt>Time</dt>
        <dd>{new Date(record.time_ms).toISOString()}</dd>
        <dt>Level</dt>
        <dd>
          {levelOf(record.severity)} (SeverityNumber {record.severity})
        </dd>
        {record.service !== '' ? (
          <>
            <dt>Service</dt>
            <dd>
              <ServiceLink name={record.service} />
            </dd>
          </>
        ) : null}
        {record.pid > 0 ? (
          <>
            <dt>Process</dt>
            <dd>
              <a href={hrefOf('logs', { pid: record.pid })}>{record.pid}</a>
            </dd>
          </>
        ) : null}
        {record.container !== '' ? (
          <>
            <dt>Container</dt>
            <dd class="mono">{record.container}</dd>
          </>
        ) : null}
        {record.trace_id !== '' ? (
          <>
            <dt>Trace</dt>
            <dd>
              <a href={traceLink(record)}>
                <code>{record.trace_id}</code>
              </a>
            </dd>
            <dt>Related logs</dt>
            <dd>
              <a href={hrefOf('logs', { trace_id: record.trace_id })}>All records of this trace</a>
            </dd>
          </>
        ) : null}
        {record.span_id !== '' ? (
          <>
            <dt>Span</dt>
            <dd>
              <code>{record.span_id}</code>
            </dd>
          </>
        ) : null}
      </dl>
      <div>
        <Copy text={record.body} what="the record" />
      </div>
    </div>
  )
}
