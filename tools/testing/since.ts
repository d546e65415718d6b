// Which test files a change can touch.
import { posix } from 'node:path'
import { programs } from '../bundle-options.ts'
import { git, unknownFiles } from '../git.ts'
import type { ImportGraph } from '../imports.ts'

/** What every test depends on. */
const everything = /^(?:package(?:-lock)?\.json|tools\/(?:setup|test|testing\/.*|imports\.ts))$/
/** What programs in the kernel and the addon are made of: tests that reach them load both. */
const native = /^(?:bpf|native)\//

/** Files that differ between a commit and the working tree, those that git does not know yet included. Throws: no commit. */
export function changedSince(commit: string): string[] {
  if (git('rev-parse', '--verify', '--quiet', `${commit}^{commit}`) === '')
    throw new Error(`--since ${commit}: git knows no such commit; give one that \`git log\` shows`)
  const changed = git('diff', '--name-only', '--no-renames', '-z', commit, '--').split('\0')
  return [...changed.filter(file => file !== ''), ...unknownFiles()]
}

/** Those of `tests` that a change can touch: what they import, start as a program, or name in their text. */
export function touched(tests: readonly string[], changed: readonly string[], graph: ImportGraph): string[] {
  if (changed.some(file => everything.test(file))) return [...tests]
  const set = new Set(changed)
  const bundled = programs.flatMap(([entry]) => [...graph.reached(entry)])
  return tests.filter(test => {
    const reached = new Set(graph.reached(test))
    if (reached.has('test/helpers/program-under-test.ts')) for (const file of bundled) reached.add(file)
    for (const file of reached) if (set.has(file)) return true
    if (reached.has('src/kernel/native.ts') && changed.some(file => native.test(file))) return true
    const texts = [...reached]
      .filter(file => file === test || file.startsWith('test/'))
      .map(file => graph.text(file))
    return changed.some(file => !reached.has(file) && texts.some(text => names(text, file)))
  })
}

/** Whether a text names a file, or the folder that it lies in, as a part of a path or a string of its own. */
function names(text: string, file: string): boolean {
  if (/\.tsx?$/.test(file) && file.startsWith('src/')) return false // it is imported, or not touched
  const folder = posix.dirname(file)
  const candidates = new Set([posix.basename(file), folder, posix.basename(folder)])
  candidates.delete('.')
  const ends = new Set(["'", '"', '`', '/'])
  for (const name of candidates)
    for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1))
      if (ends.has(text[at - 1]!) && ends.has(text[at + name.length]!)) return true
  return false
}
