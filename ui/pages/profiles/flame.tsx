import { type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { FlameDocument } from '../../../src/view/api/ui/documents.ts'
import { seriesColour } from '../../lib/colour.ts'
import { percent, withUnit } from '../../lib/format.ts'
import { useDocument } from '../../lib/live.ts'
import { parameter, setParameters } from '../../lib/route.ts'
import { useSettled } from '../../lib/settled.ts'
import { Command } from '../../parts/command.tsx'
import { Figure } from '../../parts/figure.tsx'
import { Choice, Field } from '../../parts/small.tsx'
import { Empty, Reading } from '../../parts/state.tsx'
import { callsOf, type FlameTree, flameTree, nodeOfPath } from './flame-tree.ts'
import { folded } from './folded.ts'
import { matching, topFunctions } from './functions.ts'
import { Icicle } from './icicle.tsx'
import { kindTitle, packageOf } from './packages.ts'
import {
  changeOf,
  changeSteps,
  type Shades,
  shadesByChange,
  shadesByKind,
  shadesByPackage,
} from './shades.ts'
import { changeText, TopTable } from './top-table.tsx'

export interface FlameProps {
  readonly url: string
  readonly title: string
  /** Factor for the profile to compare with, so that both cover the same time. */
  readonly baseFactor: number
  /** Name of the downloaded file. */
  readonly fileName: string
  /** Path that records a new profile. */
  readonly recording: string
}

/** The flame graph of a document, with its table. */
export function Flame(props: FlameProps) {
  const reading = useDocument<FlameDocument>(props.url)
  return (
    <Reading of={reading} what="the flame graph">
      {() => <Stacks {...props} flame={reading.value!} />}
    </Reading>
  )
}

function Stacks({ flame, title, baseFactor, fileName, recording }: FlameProps & { flame: FlameDocument }) {
  const whole = useMemo(
    () =>
      flameTree(baseFactor === 1 ? flame : { ...flame, base: flame.base.map(value => value * baseFactor) }),
    [flame, baseFactor],
  )
  const focus = parameter('focus')
  const calls = useMemo(() => (focus === '' ? undefined : callsOf(whole, focus)), [whole, focus])
  const tree = calls ?? whole
  const compared = tree.base !== undefined
  const zoom = Math.max(0, nodeOfPath(tree, Number.parseInt(parameter('at'), 36)))
  const q = parameter('q')
  const rested = useSettled(zoom, tree)
  const matches = useMemo(() => matching(tree, q, rested), [tree, q, rested])
  const functions = useMemo(() => topFunctions(tree, rested), [tree, rested])
  const byPackage = parameter('by') === 'package'
  const shades = useMemo(
    () => (compared ? shadesByChange(tree) : byPackage ? shadesByPackage(tree) : shadesByKind(tree)),
    [tree, compared, byPackage],
  )
  const chosen = useSignal(-1)
  const hovered = useSignal(-1)
  const last = useRef(tree)
  useLayoutEffect(() => {
    // The selected node stays selected in the next document.
    const path = last.current.path[chosen.peek()]
    chosen.value = path === undefined ? -1 : nodeOfPath(tree, path)
    hovered.value = -1
    last.current = tree
  }, [tree])
  const { unit } = flame
  const total = tree.sum[0] ?? 0
  const shown = tree.sum[zoom] ?? 0
  const share = (value: number, of = total) => percent(of > 0 ? (100 * value) / of : 0)
  const zoomTo = (node: number) =>
    setParameters({ at: node <= 0 ? '' : tree.path[node]!.toString(36) }, { replace: false })
  const describe = (node: number) =>
    [
      tree.names[tree.name[node]!],
      `total ${share(tree.sum[node]!)}, self ${share(tree.self[node]!)}`,
      compared ? changeText(tree.sum[node]!, tree.base![node]!, unit) : '',
      `level ${tree.depth[node]! + 1}`,
    ]
      .filter(text => text !== '')
      .join(', ')
  const label = (node: number) => {
    const name = tree.names[tree.name[node]!]!
    if (!compared) return name
    const change = changeOf(tree, node)
    return Math.abs(change) < 0.5 / changeSteps ? name : `${change > 0 ? '+' : '-'} ${name}`
  }
  const table = () => <TopTable functions={functions} total={total} unit={unit} compared={compared} />
  if (flame.total === 0 && flame.base_total === 0)
    return (
      <div class="card">
        <Empty
          title="No samples"
          why="In these intervals this service did not run, or not long enough to be sampled. Select more intervals, or all services."
        />
      </div>
    )
  const top = functions.rows[0]
  const summary = `${withUnit(shown, unit)}${zoom > 0 ? `, ${share(shown)} of the total` : ''}${
    top === undefined
      ? ''
      : `; top self ${unit === 'bytes' ? 'memory' : 'time'}: ${top.name} with ${share(top.self, shown)}`
  }.`
  return (
    <>
      {flame.missing_names.length > 0 ? <Missing flame={flame} /> : null}
      {focus !== '' ? (
        <p class="notice row" role="status">
          <span>
            {calls === undefined ? (
              <>
                <code>{focus}</code> is not in these intervals; showing everything.
              </>
            ) : (
              <>
                Showing only calls below <code>{focus}</code>, from all of its callers.
              </>
            )}
          </span>
          <button type="button" onClick={() => setParameters({ focus: '', at: '' })}>
            Remove focus
          </button>
        </p>
      ) : null}
      <h2 class="unseen">Flame graph</h2>
      <div class="columns profile">
        <Figure title={title} summary={summary} table={table}>
          <div class="tools">
            <Field label="Find a function or file">
              <input
                type="search"
                value={q}
                onInput={event => setParameters({ q: event.currentTarget.value })}
              />
            </Field>
            {compared ? null : (
              <Choice
                label="Colours"
                values={[
                  ['kind', 'By kind'],
                  ['package', 'By package'],
                ]}
                value={byPackage ? 'package' : 'kind'}
                onChoose={by => setParameters({ by: by === 'package' ? by : '' })}
              />
            )}
            <button type="button" disabled={zoom === 0} onClick={() => zoomTo(tree.parent[zoom]!)}>
              Zoom out
            </button>
            <button type="button" disabled={zoom === 0} onClick={() => zoomTo(0)}>
              Reset zoom
            </button>
          </div>
          <p class="found soft" role="status">
            {matches === undefined
              ? ''
              : matches.functions === 0
                ? `No function matches ${q.startsWith('"') ? q : `“${q}”`}.`
                : `${matches.functions === 1 ? 'One function matches' : `${matches.functions} functions match`}, with ${withUnit(matches.sum, unit)}: ${share(matches.sum, shown)} of the graph.`}
          </p>
          <Details tree={tree} zoom={zoom} chosen={chosen} hovered={hovered} unit={unit} share={share} />
          <Icicle
            tree={tree}
            zoom={zoom}
            shades={shades}
            changes={compared}
            matches={matches?.nodes}
            label={label}
            describe={describe}
            chosen={chosen}
            hovered={hovered}
            onZoom={zoomTo}
          />
          <Legend shades={shades} changes={compared} share={share} />
          <Cut flame={flame} share={share} />
        </Figure>
        <section class="card stack" key={focus}>
          <h3>Functions{zoom > 0 ? ' in the zoomed part' : ''}</h3>
          {table()}
        </section>
      </div>
      <div class="row">
        <button type="button" onClick={() => download(`${fileName}.folded`, folded(tree, zoom))}>
          Download folded text
        </button>
        <a href={recording} download="">
          Record a new profile (10 s, pprof)
        </a>
      </div>
    </>
  )
}

/** The frame under the pointer, otherwise the selected one. */
function Details({
  tree,
  zoom,
  chosen,
  hovered,
  unit,
  share,
}: {
  readonly tree: FlameTree
  readonly zoom: number
  readonly chosen: Signal<number>
  readonly hovered: Signal<number>
  readonly unit: string
  readonly share: (value: number, of?: number) => string
}) {
  // Both may still be nodes of the previous tree.
  const node = [hovered.value, chosen.value].find(at => at >= 0 && at < tree.count) ?? zoom
  const name = tree.names[tree.name[node]!]!
  const file = tree.files[tree.file[node]!]!
  const type = tree.types[tree.type[node]!]!
  const self = tree.self[node]!
  const sum = tree.sum[node]!
  const base = tree.base?.[node]
  const place = [kindTitle(type), packageOf(name, file, type), file].filter(
    (text, i, all) => text !== '' && all.indexOf(text) === i,
  )
  return (
    <div class="frame">
      <p>
        <bdi class="mono">{name}</bdi>
      </p>
      <p class="soft">
        total {withUnit(sum, unit)} ({share(sum)}), self {withUnit(self, unit)} ({share(self)})
        {base === undefined ? '' : `; before ${withUnit(base, unit)}: ${changeText(sum, base, unit)}`}
      </p>
      <p class="soft">
        <bdi>{place.join(' · ')}</bdi>
      </p>
    </div>
  )
}

/** Legend of the shades, as mixed by `paint.ts`. */
function Legend({
  shades,
  changes,
  share,
}: {
  readonly shades: Shades
  readonly changes: boolean
  readonly share: (value: number) => string
}) {
  const colour = (shade: number) =>
    shade === 0
      ? 'var(--line)'
      : changes
        ? shade > changeSteps
          ? 'var(--series-1)'
          : 'var(--bad)'
        : seriesColour(shade - 1)
  return (
    <ul class="legend">
      {shades.legend.map(({ shade, title, value }) => (
        <li key={title}>
          <span class="swatch" style={{ background: colour(shade) }} />
          {title} {value === null ? null : <b>{share(value)}</b>}
        </li>
      ))}
    </ul>
  )
}

/** Why functions have no names. */
function Missing({ flame }: { readonly flame: FlameDocument }) {
  const of = (value: number) => percent(flame.total > 0 ? (100 * value) / flame.total : 0)
  return (
    <details class="notice">
      <summary>
        Some frames have no names: {flame.missing_names[0]!.reason}
        {flame.missing_names.length > 1 ? ` (${flame.missing_names.length} reasons)` : ''}.
      </summary>
      <ul class="stack">
        {flame.missing_names.map(({ reason, value }) => (
          <li key={reason}>
            <b>{of(value)}</b> of the stacks: {reason}
          </li>
        ))}
        <li>
          <Command text="svc doctor profiles" />
        </li>
      </ul>
    </details>
  )
}

/** Node limit for the full graph, on request. */
export const allNodes = 200_000

function Cut({
  flame,
  share,
}: {
  readonly flame: FlameDocument
  readonly share: (value: number, of: number) => string
}) {
  if (!(flame.omitted > 0)) return null
  return (
    <p class="note row">
      {share(flame.omitted, flame.total)} is in stacks too small to show.
      {parameter('all') === '1' ? null : (
        <button type="button" class="quiet" onClick={() => setParameters({ all: 1 })}>
          Show more stacks
        </button>
      )}
    </p>
  )
}

function download(name: string, lines: string[]): void {
  const url = URL.createObjectURL(new Blob(lines, { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
