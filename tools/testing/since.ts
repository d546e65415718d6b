// Which test files a change can affect: rather too many than too few. A file depends on its imports. Tests, their
// helpers and tools also depend on every file and folder named in their text, because they start programs, bundle sources
// and read pages by path. A test or helper that reads files without naming them declares it in a line among its first ten,
// and every change selects it:
//
//   // reads: the tree
import { posix } from 'node:path'
import { programs } from '../bundle-options.ts'
import { git, gitPaths, treeFiles, unknownFiles } from '../git.ts'
import { type ImportGraph, KnownPaths, namedPaths } from '../imports.ts'

/** Dependencies of every test. */
const everything =
  /^(?:package(?:-lock)?\.json|\.npmrc|biome\.json|(?:.*\/)?tsconfig[^/]*\.json|tools\/(?:setup|test|testing\/.*|imports\.ts|git\.ts|bundle.*))$/
/** Sources of the programs in the kernel and the addon: tests that reach them load both. */
const native = /^(?:bpf|native)\//
const isCode = /^[^.]*$|\.(?:[cm]?[jt]s|tsx|sh|py|c|h)$/
/** Files whose text names what they need, besides imports. */
const namesFiles = /^(?:test|tools|bench|bin|bpf|native)\/|\.test\.tsx?$/
const isSource = /\.tsx?$/
/** What tools/setup bundles into dist/. */
const built = programs.map(([entry]) => entry)
/** Paths of the live page, without its API. */
const page = /^(?:dist|(?:dist\/)?ui(?!\/api)(?:\/.*)?)$/
const builtPage = ['ui/main.tsx', 'ui/index.html']

/**
 * Files that differ between a commit and the working tree: both names of a renamed one, and untracked ones. Throws: no
 * such commit.
 */
export function changedSince(commit: string, root: string = process.cwd()): string[] {
  if (git('-C', root, 'rev-parse', '--verify', '--quiet', '--end-of-options', `${commit}^{commit}`) === '')
    throw new Error(`--since ${commit}: git knows no such commit; give one that \`git log\` shows`)
  const changed = gitPaths(root, 'diff', '--name-only', '--no-renames', '--no-relative', '-z', commit, '--')
  return [...new Set([...changed, ...unknownFiles(root)])]
}

/** Those of `tests` that a change can affect. */
export function touched(tests: readonly string[], changed: readonly string[], graph: ImportGraph): string[] {
  if (changed.length === 0) return []
  if (changed.some(file => everything.test(file))) return [...tests]
  const known = new KnownPaths([...treeFiles(graph.root), ...changed])
  const users = new Map<string, string[]>() // file → files that need it
  const missing: string[] = []
  const all = new Set(tests)
  for (const file of all)
    for (const target of needsOf(file, graph, known)) {
      if (!all.has(target) && isSource.test(target) && !graph.has(target)) missing.push(target)
      all.add(target)
      const found = users.get(target)
      if (found) found.push(file)
      else users.set(target, [file])
    }
  const reached = new Set([...changed, ...missing])
  for (const file of reached) for (const user of users.get(file) ?? []) reached.add(user)
  return tests.filter(test => reached.has(test) || readers(test, graph).length > 0)
}

/** Faults of a test: it reads the whole tree, itself or by a helper, without declaring it. */
export function treeFaults(test: string, graph: ImportGraph): string[] {
  if (saysTree(graph.text(test))) return []
  return readers(test, graph).map(
    file => `${test}: reads the tree in ${file} without declaring it: add "// reads: the tree"`,
  )
}

/** Files among a test and its helpers that read the whole tree. Arguments after `...` restrict git's list. */
function readers(test: string, graph: ImportGraph): string[] {
  const lists = /\btreeFiles\((?![^)]*\.\.\.)|'ls-files'/
  const walks =
    /\bfilesOf\(root\)|(?:const root = .*import\.meta|\broot\b.*program-under-test)[\s\S]*\breaddirSync\(root\b/
  return [...graph.reached(test, file => file.startsWith('test/'))].filter(file => {
    if (file !== test && (!file.startsWith('test/') || file.endsWith('.test.ts'))) return false
    const text = graph.text(file)
    return saysTree(text) || lists.test(text) || (file === test && walks.test(text))
  })
}

function saysTree(text: string): boolean {
  return /^\/\/ reads: the tree$/m.test(text.split('\n', 10).join('\n'))
}

/** Dependencies of a file: its imports, and the paths in its text. */
function needsOf(file: string, graph: ImportGraph, known: KnownPaths): ReadonlySet<string> {
  if (!isCode.test(posix.basename(file)) || everything.test(file)) return new Set()
  const needs = new Set(graph.direct(file))
  const addAll = (files: Iterable<string>) => {
    for (const each of files) needs.add(each)
  }
  if (file === 'src/kernel/native.ts') addAll(known.matching(native))
  const text = graph.text(file)
  if (!namesFiles.test(file)) {
    // A source starts threads and processes from files beside it.
    for (const [, path] of text.matchAll(/['"`]([\w@./-]+\.tsx?)['"`]/g)) addAll(known.exact(path!, file))
    return needs
  }
  for (const named of namedPaths(text)) {
    const { path, whole } = named
    if (native.test(file) && !/\.[ch]$/.test(path)) continue
    if (whole ? /^dist(?:\/|$)/.test(path) : path.startsWith('dist/')) addAll(built)
    if (page.test(path)) addAll(builtPage)
    addAll(known.named(named, file))
  }
  return needs
}
