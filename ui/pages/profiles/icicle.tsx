import { type Signal, useSignalEffect } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { announce } from '../../lib/announce.ts'
import { palette } from '../../lib/theme.ts'
import type { FlameTree } from './flame-tree.ts'
import {
  type Direction,
  moved,
  neighbour,
  nodeAt,
  rowsOf,
  type View,
  viewOf,
  zoomed,
} from './icicle-layout.ts'
import { coloursNow, paint, rowPx } from './paint.ts'
import type { Shades } from './shades.ts'

export interface IcicleProps {
  readonly tree: FlameTree
  /** The node at full width. */
  readonly zoom: number
  readonly shades: Shades
  /** Shades show changes. */
  readonly changes: boolean
  readonly matches: Uint8Array | undefined
  /** Text in a bar. */
  readonly label: (node: number) => string
  /** Text for screen readers. */
  readonly describe: (node: number) => string
  /** -1: none. */
  readonly chosen: Signal<number>
  readonly hovered: Signal<number>
  readonly onZoom: (node: number) => void
}

const arrows: Readonly<Record<string, Direction>> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'left',
  ArrowRight: 'right',
}
/** Shorter moves are clicks. */
const dragPx = 4

/** A flame graph on a canvas, root on top. Arrow keys move between frames, Enter zooms in, Escape zooms out. */
export function Icicle(props: IcicleProps) {
  const { tree, zoom, chosen, hovered } = props
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const latest = useRef(props)
  latest.current = props
  const view = useRef<View>(viewOf(tree, zoom))
  const frame = useRef(0)
  const drag = useRef<{ x: number; from: View; moved: boolean } | undefined>(undefined)
  const rows = rowsOf(tree, zoom)
  const painted = palette.value
  const colours = useMemo(() => coloursNow(props.changes), [props.changes, painted])
  const latestColours = useRef(colours)
  latestColours.current = colours

  const paintNow = () => {
    frame.current = 0
    const element = canvas.current
    const outer = box.current
    if (element === null || outer === null) return
    const { shades, matches, label } = latest.current
    const ratio = window.devicePixelRatio || 1
    const widthPx = outer.clientWidth
    const heightPx = outer.clientHeight
    const [width, height] = [Math.round(widthPx * ratio), Math.round(heightPx * ratio)]
    if (element.width !== width || element.height !== height) {
      element.width = width
      element.height = height
      element.style.width = `${widthPx}px`
      element.style.height = `${heightPx}px`
    }
    paint(
      element.getContext('2d', { alpha: false })!,
      {
        tree: latest.current.tree,
        view: view.current,
        shade: shades.shade,
        colours: latestColours.current,
        label,
        matches,
        chosen: chosen.peek(),
        hovered: hovered.peek(),
      },
      { widthPx, heightPx, topPx: outer.scrollTop, ratio },
    )
  }
  const paintSoon = () => {
    if (frame.current === 0) frame.current = requestAnimationFrame(paintNow)
  }

  useLayoutEffect(() => {
    view.current = viewOf(tree, zoom)
    show(box.current!, tree.depth[zoom]!)
  }, [tree, zoom])
  useEffect(paintSoon)
  useSignalEffect(() => {
    // Read to subscribe: this runs whenever they change.
    void [chosen.value, hovered.value]
    paintSoon()
  })
  useEffect(() => {
    const outer = box.current!
    const watch = new ResizeObserver(paintSoon)
    watch.observe(outer)
    const turn = (event: WheelEvent) => {
      const { tree: now } = latest.current
      const all = viewOf(now, 0)
      const { left, right } = view.current
      const across = event.deltaX !== 0 ? event.deltaX : event.shiftKey ? event.deltaY : 0
      if (event.ctrlKey || event.metaKey)
        view.current = zoomed(view.current, Math.exp(event.deltaY / 300), pointOf(event), all)
      else if (across !== 0 && right - left < all.right - all.left)
        view.current = moved(view.current, (across / outer.clientWidth) * (right - left), all)
      else return
      event.preventDefault()
      paintSoon()
    }
    outer.addEventListener('wheel', turn, { passive: false })
    return () => {
      outer.removeEventListener('wheel', turn)
      watch.disconnect()
      cancelAnimationFrame(frame.current)
    }
  }, [])

  /** The value under the pointer. */
  function pointOf(event: MouseEvent): number {
    const { left, right } = view.current
    const outer = box.current!
    const x = event.clientX - outer.getBoundingClientRect().left
    return left + (x / outer.clientWidth) * (right - left)
  }
  const nodeBelow = (event: MouseEvent) => {
    const outer = box.current!
    const y = event.clientY - outer.getBoundingClientRect().top + outer.scrollTop
    return nodeAt(latest.current.tree, Math.floor(y / rowPx), pointOf(event))
  }
  const choose = (node: number) => {
    chosen.value = node
    const { left, right } = viewOf(tree, node)
    const now = view.current
    if (right <= now.left || left >= now.right)
      view.current = moved(now, (left + right - now.left - now.right) / 2, viewOf(tree, 0))
    show(box.current!, tree.depth[node]!)
    announce(props.describe(node))
  }
  const press = (event: KeyboardEvent) => {
    const direction = arrows[event.key]
    const at = chosen.peek()
    if (direction !== undefined) choose(at < 0 ? zoom : neighbour(tree, at, direction))
    else if (event.key === 'Home') choose(0)
    else if (event.key === 'Enter' && at >= 0) props.onZoom(at)
    else if (event.key === 'Escape' && zoom > 0) props.onZoom(tree.parent[zoom]!)
    else return
    event.preventDefault()
  }
  const move = (event: PointerEvent) => {
    const from = drag.current
    if (from !== undefined && event.buttons !== 0) {
      const by = event.clientX - from.x
      from.moved ||= Math.abs(by) > dragPx
      if (from.moved) {
        const span = from.from.right - from.from.left
        view.current = moved(from.from, (-by / box.current!.clientWidth) * span, viewOf(tree, 0))
        paintSoon()
        return
      }
    }
    hovered.value = nodeBelow(event)
  }
  const release = (event: PointerEvent) => {
    const from = drag.current
    drag.current = undefined
    if (from === undefined || from.moved) return
    const node = nodeBelow(event)
    if (node < 0) return
    chosen.value = node
    props.onZoom(node)
  }

  return (
    <div
      class="icicle"
      ref={box}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: keys move in it
      tabIndex={0}
      role="application"
      aria-roledescription="flame graph"
      aria-label="Flame graph, root on top. Arrow keys move to callers, callees and neighbours; Enter zooms in, Escape zooms out."
      onKeyDown={press}
      onScroll={paintSoon}
      onPointerDown={event => {
        if (event.button === 0) drag.current = { x: event.clientX, from: view.current, moved: false }
      }}
      onPointerMove={move}
      onPointerUp={release}
      onPointerCancel={() => {
        drag.current = undefined
      }}
      onPointerLeave={() => {
        hovered.value = -1
      }}
    >
      <div style={{ height: `${rows * rowPx}px` }}>
        <canvas ref={canvas} />
      </div>
    </div>
  )
}

/** Scrolls to a row. */
function show(outer: HTMLElement, row: number): void {
  const top = row * rowPx
  if (top < outer.scrollTop) outer.scrollTop = top
  else if (top + rowPx > outer.scrollTop + outer.clientHeight)
    outer.scrollTop = top + 3 * rowPx - outer.clientHeight
}
