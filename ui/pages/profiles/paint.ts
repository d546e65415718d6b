// Paints the icicle: only visible rows and bars.

import { computed } from '../../lib/colour.ts'
import type { FlameTree } from './flame-tree.ts'
import { eachBar, type View } from './icicle-layout.ts'
import { changeSteps } from './shades.ts'

export const rowPx = 18
const gapPx = 1
const textPx = 4
/** Narrower bars have no text. */
const leastTextPx = 24

export interface Colours {
  /** By shade. */
  readonly fills: readonly string[]
  readonly dimmed: string
  readonly surface: string
  readonly ink: string
  readonly inkSoft: string
  readonly accent: string
}

/** Current colours of the shades. `changes`: shades show changes instead of kinds. */
export function coloursNow(changes: boolean): Colours {
  const pencil = document.createElement('canvas').getContext('2d')!
  const series = Array.from({ length: 8 }, (_, i) => mixed(pencil, `var(--series-${i + 1})`, 0.4))
  const steps = (role: string) =>
    Array.from({ length: changeSteps }, (_, i) => mixed(pencil, role, 0.18 + 0.09 * i))
  return {
    fills: [
      mixed(pencil, 'var(--ink-soft)', 0.18),
      ...(changes ? [...steps('var(--bad)'), ...steps('var(--series-1)')] : series),
    ],
    dimmed: mixed(pencil, 'var(--ink-soft)', 0.08),
    surface: computed('var(--surface)'),
    ink: computed('var(--ink)'),
    inkSoft: computed('var(--ink-soft)'),
    accent: computed('var(--accent)'),
  }
}

export interface Picture {
  readonly tree: FlameTree
  readonly view: View
  readonly shade: Uint8Array
  readonly colours: Colours
  readonly label: (node: number) => string
  /** By node; undefined: no search. */
  readonly matches: Uint8Array | undefined
  /** -1: none. */
  readonly chosen: number
  readonly hovered: number
}

/** The visible part, in CSS pixels. */
export interface Opening {
  readonly widthPx: number
  readonly heightPx: number
  readonly topPx: number
  readonly ratio: number
}

const plain = /^[\x20-\x7e]*$/

export function paint(context: CanvasRenderingContext2D, picture: Picture, opening: Opening): void {
  const { tree, view, shade, colours, label, matches, chosen, hovered } = picture
  const { widthPx, heightPx, topPx, ratio } = opening
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.fillStyle = colours.surface
  context.fillRect(0, 0, widthPx, heightPx)
  context.font = '11px ui-monospace, monospace'
  context.textBaseline = 'middle'
  context.direction = 'ltr'
  const letterPx = context.measureText('m').width
  const firstRow = Math.floor(topPx / rowPx)
  const lastRow = Math.min(tree.rowStart.length - 2, Math.floor((topPx + heightPx) / rowPx))
  let filled = ''
  const fill = (colour: string) => {
    if (colour !== filled) context.fillStyle = colour
    filled = colour
  }
  for (let row = firstRow; row <= lastRow; row++) {
    const y = row * rowPx - topPx
    eachBar(tree, row, view, widthPx, (node, x, width) => {
      const matched = matches === undefined || matches[node] === 1
      fill(matched ? colours.fills[shade[node]!]! : colours.dimmed)
      context.fillRect(x, y, width > 3 ? width - gapPx : width, rowPx - gapPx)
      if (width >= leastTextPx) {
        fill(matched ? colours.ink : colours.inkSoft)
        write(context, label(node), x, y, width, letterPx)
      }
      if (matches !== undefined && matched && width > 3) {
        fill(colours.ink)
        context.fillRect(x, y + rowPx - gapPx - 2, width - gapPx, 2)
      }
      if (node === chosen || node === hovered) outline(context, picture, node, x, y, width)
    })
  }
}

/** Writes as much of a text as fits. */
function write(
  context: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  width: number,
  letterPx: number,
): void {
  const room = width - 2 * textPx
  const middle = y + (rowPx - gapPx) / 2 + 0.5
  if (plain.test(text)) {
    const letters = Math.floor(room / letterPx)
    context.fillText(text.length <= letters ? text : `${text.slice(0, letters - 1)}…`, x + textPx, middle)
    return
  }
  // Other scripts have variable widths, so clip.
  context.save()
  context.beginPath()
  context.rect(x, y, width - textPx, rowPx)
  context.clip()
  context.fillText(text.slice(0, Math.ceil(room / 2)), x + textPx, middle)
  context.restore()
}

function outline(
  context: CanvasRenderingContext2D,
  { colours, chosen }: Picture,
  node: number,
  x: number,
  y: number,
  width: number,
): void {
  context.strokeStyle = node === chosen ? colours.accent : colours.ink
  context.lineWidth = node === chosen ? 2 : 1
  context.strokeRect(x + 1, y + 1, Math.max(1, width - gapPx - 2), rowPx - gapPx - 2)
}

/** `share` of a role on the surface, in the form that canvases parse fastest. */
function mixed(pencil: CanvasRenderingContext2D, role: string, share: number): string {
  const [upper, lower] = [computed(role), computed('var(--surface)')]
  pencil.fillStyle = `color-mix(in srgb, ${upper} ${Math.round(share * 100)}%, ${lower})`
  return pencil.fillStyle
}
