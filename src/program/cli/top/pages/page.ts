import type { Look } from '../../pen.ts'
import type { Line } from '../line.ts'

/** What a page may use. */
export interface Canvas {
  readonly columns: number
  readonly rows: number
  /** Signs beyond ASCII may be used. */
  readonly unicode: boolean
  /** Foreign text as it may stand on the screen. */
  readonly shown: (text: string) => string
}

/** Errors are told by a sign too, never by colour alone. */
export function errorLook(percent: number): Look | undefined {
  return percent >= 1 ? 'red' : percent > 0 ? 'yellow' : undefined
}

/** As many lines as there is room, from `scrolled` on; `scrolled` is held to what there is. */
export function scrolledLines(lines: readonly Line[], rows: number, view: { scrolled: number }): Line[] {
  view.scrolled = Math.max(0, Math.min(view.scrolled, lines.length - rows))
  return lines.slice(view.scrolled, view.scrolled + rows)
}
