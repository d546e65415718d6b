// The shade of each bar: by kind of code, by package or by change. Shades are numbers; their colours are those of
// `paint.ts`.

import { type FlameTree, hash } from './flame-tree.ts'
import { kindSeries, kindTitle, packageOf } from './packages.ts'

export interface Shades {
  /** By node. */
  readonly shade: Uint8Array
  /** Largest first. */
  readonly legend: readonly ShadeTitle[]
}

export interface ShadeTitle {
  readonly shade: number
  readonly title: string
  /** Sum of the self values with this shade; null if it has no meaning. */
  readonly value: number | null
}

/** Shades 1 to 8 are series colours; 0 is for an unknown kind. */
const seriesShades = 8
const mostTitles = 10

/** Number of shades for a change; larger changes look the same. */
export const changeSteps = 5

export function shadesByKind(tree: FlameTree): Shades {
  const ofTypes = Uint8Array.from(tree.types, kindSeries)
  return shaded(
    tree,
    node => ofTypes[tree.type[node]!]!,
    node => kindTitle(tree.types[tree.type[node]!]!),
  )
}

export function shadesByPackage(tree: FlameTree): Shades {
  const packages = new Map<number, string>()
  const packageAt = (node: number) => {
    const key =
      (tree.name[node]! * tree.files.length + tree.file[node]!) * tree.types.length + tree.type[node]!
    let found = packages.get(key)
    if (found === undefined) {
      const type = tree.types[tree.type[node]!]!
      found = packageOf(tree.names[tree.name[node]!]!, tree.files[tree.file[node]!]!, type)
      packages.set(key, found)
    }
    return found
  }
  return shaded(
    tree,
    node => {
      const name = packageAt(node)
      return name === '' ? 0 : 1 + (hash(name) % seriesShades)
    },
    packageAt,
  )
}

/** 0: unchanged; 1 to `changeSteps`: increases, by size; as many again: decreases. */
export function shadesByChange(tree: FlameTree): Shades {
  const shade = new Uint8Array(tree.count)
  for (let node = 0; node < tree.count; node++) {
    const change = changeOf(tree, node)
    const step = Math.min(changeSteps, Math.round(Math.abs(change) * changeSteps))
    shade[node] = step === 0 ? 0 : change > 0 ? step : changeSteps + step
  }
  return {
    shade,
    legend: [
      { shade: changeSteps, title: '+ more than before', value: null },
      { shade: 2 * changeSteps, title: '− less than before', value: null },
      { shade: 0, title: 'about the same', value: null },
    ],
  }
}

/** From -1 (gone) to 1 (new). */
export function changeOf({ sum, base }: FlameTree, node: number): number {
  const now = sum[node]!
  const before = base?.[node] ?? now
  const most = Math.max(now, before)
  return most > 0 ? (now - before) / most : 0
}

function shaded(tree: FlameTree, shadeOf: (node: number) => number, titleOf: (node: number) => string) {
  const shade = new Uint8Array(tree.count)
  const sums = new Map<string, { shade: number; value: number }>()
  for (let node = 0; node < tree.count; node++) {
    shade[node] = shadeOf(node)
    if (!(tree.self[node]! > 0)) continue
    const title = titleOf(node)
    const sum = sums.get(title)
    if (sum === undefined) sums.set(title, { shade: shade[node]!, value: tree.self[node]! })
    else sum.value += tree.self[node]!
  }
  const legend = [...sums]
    .map(([title, sum]) => ({ title: title === '' ? 'unknown' : title, ...sum }))
    .sort((a, b) => b.value - a.value)
  return { shade, legend: legend.slice(0, mostTitles) }
}
