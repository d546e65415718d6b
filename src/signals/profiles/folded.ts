// Folded stacks, for flamegraph.pl and speedscope: `root;…;leaf value`, one stack per line.

import type { FlameTree } from './flame-tree.ts'

/** Maximum characters of all lines; one extra line counts the rest. */
const mostCharacters = 16 << 20

/** Stacks of a tree with groups outermost, as sorted lines in parts. */
export function* foldedParts(tree: FlameTree, most = mostCharacters): Generator<string> {
  const names = tree.strings.map(foldable)
  const { parent, name, self } = tree
  const size = parent.length
  const length = new Float64Array(size)
  const leaves: number[] = []
  for (let node = 0; node < size; node++) {
    if (node > 0) length[node] = length[parent[node]!]! + names[name[node]!]!.length + 1
    if (self[node]! > 0) leaves.push(node)
  }
  leaves.sort((a, b) => self[b]! - self[a]!)
  let room = most
  let shown = 0
  while (shown < leaves.length) {
    room -= length[leaves[shown]!]! + 18
    if (room < 0) break
    shown++
  }
  let rest = 0
  for (const node of leaves.slice(shown)) rest += self[node]!
  const lines = leaves.slice(0, shown).map(node => `${stackOf(node)} ${self[node]}\n`)
  if (rest > 0) lines.push(`[other] ${rest}\n`)
  yield* lines.sort()

  function stackOf(leaf: number): string {
    const path: string[] = []
    for (let node = leaf; node > 0; node = parent[node]!) path.push(names[name[node]!]!)
    return path.reverse().join(';')
  }
}

/** A semicolon would start another frame. */
function foldable(name: string): string {
  return name.replaceAll(';', ',')
}
