// Which test files are run, and which of them share a process.
import { treeFiles } from '../git.ts'
import type { ImportGraph } from '../imports.ts'
import { ownsFaults, readOwns } from './owns.ts'
import type { Group } from './schedule.ts'

/** Files that share a process at most: few, so that none waits long for the last ones, many, so that starts are few. */
const mostShared = 24

/** Tests of the tree, sorted. */
export function allTests(): string[] {
  return treeFiles('.', 'src/*.test.ts', 'ui/*.test.ts', 'test/*.test.ts').sort()
}

/** Tests that do more in a soak: those that reach its helper. */
export function soakTests(files: readonly string[], graph: ImportGraph): string[] {
  return files.filter(file => reachedTests(file, graph).has('test/helpers/soak.ts'))
}

/** Tests that start the bundle as a process: those that reach its helper. */
export function needsBundle(files: readonly string[], graph: ImportGraph): boolean {
  return files.some(file => reachedTests(file, graph).has('test/helpers/program-under-test.ts'))
}

function reachedTests(file: string, graph: ImportGraph): ReadonlySet<string> {
  return graph.reached(file, each => /^test\//.test(each))
}

/** Groups in the order in which they are begun. Throws with all faults where files do not say what they own. */
export function planGroups(files: readonly string[], graph: ImportGraph): Group[] {
  const faults = files.flatMap(file => ownsFaults(file, graph))
  if (faults.length > 0) throw new Error(faults.join('\n'))
  const alone: Group[] = []
  const shared: Group[] = []
  for (const file of files) {
    const owns = readOwns(graph.text(file))
    const last = shared.at(-1)
    if (owns.size > 0) alone.push({ files: [file], owns })
    else if (last === undefined || last.files.length === mostShared) shared.push({ files: [file], owns })
    else shared[shared.length - 1] = { files: [...last.files, file], owns }
  }
  // One file at a time owns the host: what else there is runs beside those, and the rest of it behind them.
  const ranks = ['host', 'load', 'ports', 'process', ''] as const
  const rank = ({ owns }: Group) =>
    owns.has('processor') ? ranks.length : ranks.findIndex(word => word === '' || owns.has(word))
  return [...alone, ...shared].sort((a, b) => rank(a) - rank(b))
}
