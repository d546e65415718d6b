// The limits of budgets.json: what each applies to, and whether it is met.
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Figure, numberText } from '../../bench/lib/figures.ts'
import { pageWeights } from '../page-weights.ts'
import { countLines, filesOf, lineLimit } from '../source-lines.ts'

/** A limit and its measurement. */
export interface Verdict {
  /** Its keys in budgets.json, joined by dots. */
  readonly name: string
  /** A figure says itself which is better; unknown until it is measured. */
  readonly bound: 'at most' | 'at least' | 'limit'
  readonly limit: number
  readonly result: 'held' | 'not held' | 'not measured'
  readonly value?: number
  /** Why it was not measured; '' if it was. */
  readonly reason: string
}

function longest(root: string, kind: 'source' | 'test' | 'tool'): number {
  const files = filesOf(root).filter(file => lineLimit(file) === kind)
  return Math.max(0, ...files.map(file => countLines(readFileSync(resolve(root, file), 'latin1'))))
}

function countDependencies(root: string): number {
  const { dependencies = {} } = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8'))
  return Object.keys(dependencies).length
}

function weights(root: string): ReturnType<typeof pageWeights> | undefined {
  const folder = resolve(root, 'dist/ui')
  return existsSync(resolve(folder, 'index.html.br')) ? pageWeights(folder) : undefined
}

/** Numbers of the tree below a root, at most the limit; undefined if what it counts is not built. */
const counts: Readonly<Record<string, (root: string) => number | undefined>> = {
  'lines.source': root => longest(root, 'source'),
  'lines.test': root => longest(root, 'test'),
  'lines.tool': root => longest(root, 'tool'),
  dependencies: countDependencies,
  'ui.brotli_bytes': root => weights(root)?.all,
  'ui.first_brotli_bytes': root => weights(root)?.first,
}

/** Limits below this key have the name of a benchmark's figure, and apply to its median. */
const ofFigures = 'figures.'

/** The limits of budgets.json below `root`, by name. Throws if nothing measures one of them. */
export function readLimits(root: string): Map<string, number> {
  const limits = new Map<string, number>()
  const visit = (of: Readonly<Record<string, unknown>>, above: string) => {
    for (const [key, value] of Object.entries(of)) {
      const name = `${above}${key}`
      if (typeof value === 'object' && value !== null) visit(value as Record<string, unknown>, `${name}.`)
      else if (typeof value !== 'number') throw new Error(`budgets.json: ${name} is not a number`)
      else if (!name.startsWith(ofFigures) && !Object.hasOwn(counts, name))
        throw new Error(
          `budgets.json: nothing measures ${name}: add its measurement to tools/benching/budgets.ts`,
        )
      else limits.set(name, value)
    }
  }
  visit(JSON.parse(readFileSync(resolve(root, 'budgets.json'), 'utf8')), '')
  return limits
}

/** Compares each limit with the tree below `root` and the figures of a run, except those of `failed` scripts. */
export function judge(
  limits: ReadonlyMap<string, number>,
  figures: ReadonlyMap<string, Figure>,
  failed: ReadonlySet<string>,
  root: string,
): Verdict[] {
  return [...limits].map(([name, limit]) => {
    const isFigure = name.startsWith(ofFigures)
    const of = isFigure ? name.slice(ofFigures.length) : ''
    const script = of.split('.')[0]!
    const figure = failed.has(script) ? undefined : figures.get(of)
    const value = isFigure ? figure?.median : counts[name]!(root)
    if (value === undefined) {
      const reason = failed.has(script) ? `${script} failed` : `needs ${of || 'the built page'}`
      return { name, bound: isFigure ? 'limit' : 'at most', limit, result: 'not measured', reason }
    }
    const bound = figure?.better === 'more' ? 'at least' : 'at most'
    const isMet = bound === 'at most' ? value <= limit : value >= limit
    return { name, bound, limit, result: isMet ? 'held' : 'not held', value, reason: '' }
  })
}

/** `value` with enough digits to tell it from `limit`. */
function besideLimit(value: number, limit: number): string {
  const side = (of: number) => Math.sign(of - limit)
  for (let digits = 4; digits < 17; digits++) {
    const text = numberText(value, digits)
    if (side(Number(text.replaceAll(',', ''))) === side(value)) return text
  }
  return String(value)
}

export function verdictText({ name, bound, limit, result, value, reason }: Verdict): string {
  const measured = value === undefined ? `: ${reason}` : `, measured ${besideLimit(value, limit)}`
  return `${result.padEnd(12)}  ${name.padEnd(52)}  ${bound} ${numberText(limit, 15)}${measured}`
}
