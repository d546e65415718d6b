// Checks the architecture: allowed imports, refused texts and words, limits of lines (budgets.json). Prints a line for
// each fault, `file:line: rule: what`, and exits 1 if there is any.
import { existsSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { posix, resolve } from 'node:path'
import { allow, bans, entries, shared, texts, units } from './architecture.ts'
import { imports } from './imports.ts'
import { refusedIn, refusedWords, wordsPage } from './refused-words.ts'
import { countLines, filesOf, isTest, lineLimit } from './source-lines.ts'

/** The faults of the files below `root` (absolute) that git tracks or would add. */
export function checkArchitecture(root: string): string[] {
  const faults: string[] = []
  const json = (name: string) => JSON.parse(readFileSync(resolve(root, name), 'utf8'))
  const { lines: limits, dependencies: most } = json('budgets.json')
  const { dependencies = {}, devDependencies = {}, exports = {} } = json('package.json')
  const packages = Object.keys(dependencies)
  if (packages.length > most)
    faults.push(`package.json:1: dependencies: ${packages.length}, the limit is ${most}`)
  const files = filesOf(root)
  const words = refusedWords(readFileSync(resolve(root, wordsPage), 'utf8'))
  // The units of an area are listed in its index.ts; without one, each file outside of folders is a unit, except
  // `_shared.ts`.
  const isUnit = (file: string) => {
    const area = units.exec(file)?.[0]
    if (area === undefined) return false // above the units, so shared by them
    const path = file.slice(area.length)
    const list = resolve(root, area, 'index.ts')
    return existsSync(list) ? readFileSync(list, 'latin1').includes(`'./${path}'`) : /^[^_/]+$/.test(path)
  }
  const graph = new Map<string, string[]>() // source file → imported source files
  for (const file of files) {
    const text = readFileSync(resolve(root, file), 'latin1')
    const report = (index: number, rule: string, what: string) =>
      faults.push(`${file}:${text.slice(0, index).split('\n').length}: ${rule}: ${what}`)
    for (const [where, pattern, rule, why] of texts) {
      const found = where.test(file) ? pattern.exec(text) : null
      if (found) report(found.index, rule, `"${found[0]}": ${why}`)
    }
    for (const { index, what } of refusedIn(file, text, words)) report(index, 'english', what)
    const own = text.indexOf(`${root}/`)
    if (own >= 0) report(own, 'paths', `"${root}/": a machine-specific path`)
    const limit = limits[lineLimit(file) ?? '']
    if (countLines(text) > limit)
      report(0, 'lines', `${countLines(text)}, the limit is ${limit}: split it by subject`)
    if (isTest(file)) continue
    if (/^src\/.*\.ts$/.test(file)) graph.set(file, checkImports(file, text, { packages, isUnit, report }))
    if (/^ui\/.*(?<!\.d)\.tsx?$/.test(file))
      graph.set(file, checkPage(file, text, { packages: Object.keys(devDependencies), isUnit, report }))
  }

  const reached = new Set<string>()
  const visit = (file: string, trail: readonly string[]) => {
    if (trail.includes(file))
      faults.push(`${file}:1: cycles: ${[...trail.slice(trail.indexOf(file)), file].join(' → ')}`)
    if (reached.has(file) || !graph.has(file)) return
    reached.add(file)
    for (const target of graph.get(file)!) visit(target, [...trail, file])
  }
  for (const entry of [...entries, ...(JSON.stringify(exports).match(/src\/[^"]+/g) ?? [])]) visit(entry, [])
  for (const file of graph.keys()) {
    if (!reached.has(file))
      faults.push(`${file}:1: reach: not reachable from src/main.ts or the package's exports`)
    visit(file, [])
  }
  return faults
}

interface Context {
  readonly packages: readonly string[]
  isUnit(file: string): boolean
  report(index: number, rule: string, what: string): void
}

/** The longest row that contains the file; undefined if there is none. */
function areaOf(file: string): string | undefined {
  const path = file.replace(/^src\//, '')
  const areas = path === file ? [] : Object.keys(allow).filter(area => isIn(path, area))
  return areas.toSorted((a, b) => b.length - a.length)[0]
}

function isIn(path: string, area: string): boolean {
  return path === area || path.startsWith(`${area}/`)
}

/** Reports forbidden imports of `file`, and returns the source files that it imports. */
function checkImports(file: string, text: string, { packages, isUnit, report }: Context): string[] {
  const area = areaOf(file)
  const allowed = area === undefined ? [] : allow[area]!
  if (area === undefined) report(0, 'areas', 'in no row of the table in tools/architecture.ts')
  const targets: string[] = []
  for (const found of text.matchAll(imports)) {
    const specifier = (found[1] ?? found[2] ?? found[3])!
    const refuse = (rule: string, why: string) => report(found.index, rule, `"${specifier}": ${why}`)
    const module = builtinModules.includes(specifier) ? `node:${specifier}` : specifier
    for (const [where, banned, why] of bans) if (where.test(file) && banned.test(module)) refuse('bans', why)
    if (!specifier.startsWith('.')) {
      if (!module.startsWith('node:') && !packages.some(name => `${module}/`.startsWith(`${name}/`)))
        refuse('packages', 'not among the dependencies of package.json')
      continue
    }
    const target = posix.join(posix.dirname(file), specifier)
    const to = areaOf(target) ?? target
    targets.push(target)
    if (isTest(target)) refuse('layers', 'a source file does not import a test')
    else if (area !== undefined && to !== area && !allowed.some(each => isIn(to, each)))
      refuse('layers', `${area} may import ${[area, ...allowed].join(', ')}`)
    else if (to === area && units.test(file) && isUnit(target) && file !== `${units.exec(file)![0]}index.ts`)
      refuse('units', 'only the list of its area imports a unit: share code in a file that is not a unit')
  }
  return targets
}

/** The same for a file of the page, which is bundled with its packages. */
function checkPage(file: string, text: string, { packages, report }: Context): string[] {
  const targets: string[] = []
  for (const found of text.matchAll(imports)) {
    const specifier = (found[1] ?? found[2] ?? found[3])!
    if (!specifier.startsWith('.')) {
      if (!packages.some(name => `${specifier}/`.startsWith(`${name}/`)))
        report(found.index, 'packages', `"${specifier}": not among the devDependencies of package.json`)
      continue
    }
    const target = posix.join(posix.dirname(file), specifier)
    if (target.startsWith('ui/')) targets.push(target)
    else if (!shared.test(target))
      report(
        found.index,
        'layers',
        `"${specifier}": the page may import only documents.ts and pages.ts from src`,
      )
  }
  return targets
}

if (import.meta.main) {
  const faults = checkArchitecture(process.cwd())
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length > 0 ? 1 : 0
}
