import { fitted, widthOf } from '../../../foundation/lib/terminal-text.ts'
import type { Look, Pen } from '../pen.ts'

/** Styled or plain text. It must be safe for a terminal, as returned by `terminalText`. */
export type Piece = string | readonly [text: string, look: Look | undefined]
export type Line = readonly Piece[]

/** A line cut to a width. */
export function lineText(line: Line, columns: number, pen: Pen): string {
  let text = ''
  let left = columns
  for (const piece of line) {
    if (left <= 0) break
    const [raw, look] = typeof piece === 'string' ? [piece, undefined] : piece
    const own = fitted(raw, left)
    left -= widthOf(own)
    text += pen(own, look)
  }
  return text
}

/** Width of a line. */
export function lineWidth(line: Line): number {
  return line.reduce((sum, piece) => sum + widthOf(typeof piece === 'string' ? piece : piece[0]), 0)
}

/** Two parts of a line, the second right-aligned if there is room. */
export function spread(left: Line, right: Line, columns: number): Line {
  const gap = Math.max(2, columns - lineWidth(left) - lineWidth(right))
  return [...left, ' '.repeat(gap), ...right]
}
