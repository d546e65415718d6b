// Layout of an icicle: the visible part, the nodes of a row, the node at a point. The root is at the top. Zooming does
// not lay out again: rows are sorted, so visible nodes are found by search.

import type { FlameTree } from './flame-tree.ts'

/** Left and right edge, in the unit of the values. */
export interface View {
  readonly left: number
  readonly right: number
}

/** Narrower bars are not drawn. */
export const leastBarPx = 0.5

/** The view with this node at full width; if it has no width, its parent. */
export function viewOf(tree: FlameTree, node: number): View {
  let at = node
  while (at > 0 && !(tree.sum[at]! > 0)) at = tree.parent[at]!
  const left = tree.left[at] ?? 0
  return { left, right: left + (tree.sum[at] || 1) }
}

/** Index in `rowNodes` of the first node of a row beyond a point; the end of the row if there is none. */
function firstAfter(tree: FlameTree, depth: number, point: number): number {
  const { rowNodes, rowStart, left, sum } = tree
  let low = rowStart[depth] ?? 0
  let high = rowStart[depth + 1] ?? low
  while (low < high) {
    const middle = (low + high) >>> 1
    const node = rowNodes[middle]!
    if (left[node]! + sum[node]! > point) high = middle
    else low = middle + 1
  }
  return low
}

/** Calls back for each visible bar of a row, from left to right, in pixels, clipped at both sides. */
export function eachBar(
  tree: FlameTree,
  depth: number,
  view: View,
  widthPx: number,
  draw: (node: number, x: number, width: number) => void,
): void {
  const { rowNodes, rowStart, left, sum } = tree
  const end = rowStart[depth + 1] ?? 0
  const scale = widthPx / (view.right - view.left)
  const least = leastBarPx / scale
  let at = firstAfter(tree, depth, view.left)
  while (at < end) {
    const node = rowNodes[at]!
    const from = left[node]!
    if (from >= view.right) return
    if (sum[node]! < least) {
      // Skips nodes that end within the least width from here: they are too narrow. The next may be just wide enough.
      at = Math.max(at + 1, firstAfter(tree, depth, from + 0.999 * least))
      continue
    }
    const x = Math.max(0, (from - view.left) * scale)
    const width = Math.min(widthPx, (from + sum[node]! - view.left) * scale) - x
    if (width >= leastBarPx) draw(node, x, width)
    at++
  }
}

/** The node at a point, -1 for none. */
export function nodeAt(tree: FlameTree, depth: number, point: number): number {
  const at = firstAfter(tree, depth, point)
  if (at >= (tree.rowStart[depth + 1] ?? 0)) return -1
  const node = tree.rowNodes[at]!
  return tree.left[node]! <= point ? node : -1
}

export type Direction = 'up' | 'down' | 'left' | 'right'

/** Target of an arrow key: the parent, the largest child or a sibling. The node itself if there is none. */
export function neighbour(tree: FlameTree, node: number, direction: Direction): number {
  const { parent, end } = tree
  const above = parent[node]!
  switch (direction) {
    case 'up':
      return above < 0 ? node : above
    case 'down':
      return end[node]! > node + 1 ? node + 1 : node
    case 'right':
      return above >= 0 && end[node]! < end[above]! ? end[node]! : node
    case 'left':
      return above < 0 ? node : siblingBefore(tree, node)
  }
}

function siblingBefore({ parent, depth, rowNodes, rowStart }: FlameTree, node: number): number {
  let low = rowStart[depth[node]!]!
  let high = rowStart[depth[node]! + 1]! - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (rowNodes[middle]! < node) low = middle + 1
    else high = middle
  }
  const before = rowNodes[low - 1]
  return before !== undefined && parent[before] === parent[node] ? before : node
}

/** Depth from the root to the deepest descendant of a node. */
export function rowsOf(tree: FlameTree, node: number): number {
  let most = tree.depth[node] ?? 0
  for (let at = node; at < (tree.end[node] ?? 0); at++) most = Math.max(most, tree.depth[at]!)
  return most + 1
}

/** The view zoomed around a point, within bounds. */
export function zoomed({ left, right }: View, factor: number, around: number, bounds: View): View {
  const most = bounds.right - bounds.left
  const span = Math.min(most, Math.max(most / 1e9, (right - left) * factor))
  const from = around - ((around - left) / (right - left)) * span
  return within(from, span, bounds)
}

/** The view moved sideways, within bounds. */
export function moved({ left, right }: View, by: number, bounds: View): View {
  return within(left + by, right - left, bounds)
}

function within(from: number, span: number, bounds: View): View {
  const left = Math.max(bounds.left, Math.min(from, bounds.right - span))
  return { left, right: left + span }
}
