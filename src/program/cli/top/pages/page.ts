import type { Look } from '../../pen.ts'
import type { Line } from '../line.ts'

/** The screen available to a page. */
export interface Canvas {
  readonly columns: number
  readonly rows: number
  /** Characters beyond ASCII are allowed. */
  readonly unicode: boolean
  /** Makes foreign text safe for the screen. */
  readonly shown: (text: string) => string
}

/** Errors also have a sign: colour alone does not suffice. */
export function errorLook(percent: number): Look | undefined {
  return percent >= 1 ? 'red' : percent > 0 ? 'yellow' : undefined
}

/** As many lines as fit, from `scrolled` on; limits `scrolled` to the existing lines. */
export function scrolledLines(lines: readonly Line[], rows: number, view: { scrolled: number }): Line[] {
  view.scrolled = Math.max(0, Math.min(view.scrolled, lines.length - rows))
  return lines.slice(view.scrolled, view.scrolled + rows)
}
