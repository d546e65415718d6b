// A graph from left to right whose nodes are focusable and clickable.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import './graph.css'
import { type Layout, layeredLayout, type Pass, pairOf } from './layered-layout.ts'

export interface GraphNode {
  readonly id: string
  readonly title: string
  /** A second line. */
  readonly note: string
  /** The full text for screen readers. */
  readonly label: string
  readonly tone?: 'bad' | 'warn' | 'off' | ''
  /** A role: the colour of its left stripe. */
  readonly colour?: string
}

export interface GraphEdge {
  readonly from: string
  readonly to: string
  readonly label: string
  /** 1 to 8 pixels. */
  readonly width: number
  readonly tone?: 'bad' | 'faint' | ''
}

const nodeSize = { width: 168, height: 46 }
const gapY = 16
/** Distance between layers, by the longest label between them. */
const [leastGapX, mostGapX, characterPx] = [70, 170, 5.6]
const margin = 12
/** Longest line of a node in characters; longer ones are cut, with the full text in the title. */
const lineLength = 24

export function Graph({
  label,
  nodes,
  edges,
  chosen,
  onChoose,
}: {
  readonly label: string
  readonly nodes: readonly GraphNode[]
  readonly edges: readonly GraphEdge[]
  readonly chosen: string
  readonly onChoose: (id: string) => void
}) {
  const before = useRef<Layout | undefined>(undefined)
  const box = useRef<SVGSVGElement>(null)
  const current = useSignal('')
  const layout = layeredLayout(
    nodes.map(({ id }) => ({ id, ...nodeSize })),
    edges,
    { gapX: gapFor(edges), gapY, before: before.current },
  )
  before.current = layout
  const { places } = layout
  const stop = places.has(current.value) ? current.value : (nodes[0]?.id ?? '')
  const move = (event: KeyboardEvent, id: string) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault()
      onChoose(id)
      return
    }
    const next = nearest(layout, id, event.key)
    if (next === undefined) return
    event.preventDefault()
    current.value = next
    box.current?.querySelector<SVGGElement>(`[data-id="${CSS.escape(next)}"]`)?.focus()
  }
  const [width, height] = [layout.width + 2 * margin, layout.height + 2 * margin]
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
    <div class="scroll" tabIndex={0}>
      {/* biome-ignore lint/a11y/useSemanticElements: an image has no parts to press */}
      <svg ref={box} class="graph" width={width} height={height} role="group" aria-label={label}>
        <g transform={`translate(${margin} ${margin})`}>
          {edges.map(edge => (
            <Edge
              key={`${edge.from} ${edge.to} ${edge.label.split(' ')[0]}`}
              edge={edge}
              layout={layout}
              isOneOfMany={edges.some(({ from, to }) => to === edge.to && from !== edge.from)}
            />
          ))}
          {nodes.map(({ id, title, note, label: said, tone = '', colour }) => {
            const { x, y } = places.get(id)!
            return (
              // biome-ignore lint/a11y/useSemanticElements: SVG has no buttons
              <g
                key={id}
                class={`node ${tone} ${id === chosen ? 'chosen' : ''}`}
                data-id={id}
                transform={`translate(${x} ${y})`}
                tabIndex={id === stop ? 0 : -1}
                role="button"
                aria-description={said}
                aria-pressed={id === chosen}
                onClick={() => onChoose(id)}
                onFocus={() => {
                  current.value = id
                }}
                onKeyDown={event => move(event, id)}
              >
                <rect {...nodeSize} rx="6">
                  <title>{said}</title>
                </rect>
                {colour === undefined ? null : (
                  <rect class="stripe" width="5" height={nodeSize.height} style={{ fill: colour }} />
                )}
                <text x="13" y="19">
                  {cut(title)}
                </text>
                <text x="13" y="36" class="soft">
                  {cut(note)}
                </text>
              </g>
            )
          })}
        </g>
      </svg>
    </div>
  )
}

function Edge({
  edge: { from, to, label, width, tone = '' },
  layout,
  isOneOfMany,
}: {
  readonly edge: GraphEdge
  readonly layout: Layout
  /** Other edges lead to the same node. */
  readonly isOneOfMany: boolean
}) {
  const [a, b] = [layout.places.get(from), layout.places.get(to)]
  if (a === undefined || b === undefined || from === to) return null
  const isBack = b.layer <= a.layer
  const [x1, y1] = [a.x + (isBack ? 0 : nodeSize.width), a.y + nodeSize.height / 2]
  const [x2, y2] = [b.x + (isBack ? nodeSize.width : 0), b.y + nodeSize.height / 2]
  const stops = [
    { left: x1, right: x1, y: y1 },
    ...(layout.passes.get(pairOf({ from, to })) ?? []).map(pass =>
      isBack ? { left: pass.right, right: pass.left, y: pass.y } : pass,
    ),
    { left: x2, right: x2, y: y2 },
  ]
  // Labels are placed near the end where edges are apart.
  const labelled = isOneOfMany ? 1 : stops.length - 1
  const [before, after] = [stops[labelled - 1]!, stops[labelled]!]
  const labelX = (before.right + after.left) / 2
  const labelY = before.y + (after.y - before.y) * (isOneOfMany ? 0.2 : 0.8)
  return (
    <g class={`edge ${tone}`}>
      <title>{label}</title>
      <path d={pathThrough(stops, isBack ? -1 : 1)} style={{ strokeWidth: `${width}px` }} />
      {tone === 'faint' ? null : (
        <text x={labelX} y={labelY - 4}>
          {label}
        </text>
      )}
    </g>
  )
}

/** A curve through all stops, horizontal at each. `way`: 1 to the right, -1 to the left. */
function pathThrough(stops: readonly Pass[], way: number): string {
  let path = `M${stops[0]!.right} ${stops[0]!.y}`
  for (let i = 1; i < stops.length; i++) {
    const [a, b] = [stops[i - 1]!, stops[i]!]
    const bend = way * Math.max(40, Math.abs(b.left - a.right) / 2)
    path += ` C${a.right + bend} ${a.y} ${b.left - bend} ${b.y} ${b.left} ${b.y} H${b.right}`
  }
  return path
}

/** Space for the labels, within limits. */
function gapFor(edges: readonly GraphEdge[]): number {
  const longest = edges.reduce((most, { label }) => Math.max(most, label.length), 0)
  return Math.min(mostGapX, Math.max(leastGapX, longest * characterPx + 8))
}

function cut(text: string): string {
  return text.length <= lineLength ? text : `${text.slice(0, lineLength - 1)}…`
}

/** The nearest node in the direction of an arrow key. */
function nearest({ places }: Layout, id: string, key: string): string | undefined {
  const from = places.get(id)!
  const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key]
  if (step === undefined) return undefined
  const [right, down] = step as [number, number]
  let best: string | undefined
  let least = Number.POSITIVE_INFINITY
  for (const [other, { x, y }] of places) {
    const ahead = (x - from.x) * right + (y - from.y) * down
    const beside = Math.abs((x - from.x) * down) + Math.abs((y - from.y) * right)
    if (ahead <= 0 || (down !== 0 && beside > 0)) continue
    const distance = ahead + 2 * beside
    if (distance < least) [best, least] = [other, distance]
  }
  return best
}
