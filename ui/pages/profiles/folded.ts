// A tree as folded stacks, the format of flame graph tools: one `outer;inner 12` per line.

import type { FlameTree } from './flame-tree.ts'

/** Values are whole numbers in the unit of the tree. Separators of the format are removed from function names. */
export function folded(tree: FlameTree, node = 0): string[] {
  const names = tree.names.map(name => name.replace(/;/g, ':').replace(/[\r\n]+/g, ' '))
  const lines: string[] = []
  const stack: string[] = []
  const from = tree.depth[node] ?? 0
  for (let at = node; at < (tree.end[node] ?? 0); at++) {
    const depth = tree.depth[at]! - from
    stack.length = depth
    stack.push(names[tree.name[at]!]!)
    const value = Math.round(tree.self[at]!)
    if (value > 0) lines.push(`${stack.join(';')} ${value}\n`)
  }
  return lines
}
