// Which test files to run, and which of them share a process.
import { treeFiles } from '../git.ts'
import type { ImportGraph } from '../imports.ts'
import { ownsFaults, readOwns } from './owns.ts'
import type { Group } from './schedule.ts'

/**
 * Maximum number of files that share a process: a small number keeps the end of a run short, a large one saves starts.
 */
const mostShared = 24

/** Tests of the tree, sorted. */
export function allTests(): string[] {
  return treeFiles('.', 'src/*.test.ts', 'ui/*.test.ts', 'test/*.test.ts').sort()
}

/** Tests that do more in a soak: those that import its helper. */
export function soakTests(files: readonly string[], graph: ImportGraph): string[] {
  return files.filter(file => reachedTests(file, graph).has('test/helpers/soak.ts'))
}

/** Tests that start the bundle as a process: those that import its helper. */
export function needsBundle(files: readonly string[], graph: ImportGraph): boolean {
  return files.some(file => reachedTests(file, graph).has('test/helpers/program-under-test.ts'))
}

function reachedTests(file: string, graph: ImportGraph): ReadonlySet<string> {
  return graph.reached(file, each => /^test\//.test(each))
}

/** Groups in the order of starting. Throws with all faults if declarations are missing. */
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
  // Files that own the host run one at a time, so they start first; others run beside them, and the rest after them.
  const ranks = ['host', 'load', 'ports', 'process', ''] as const
  const rank = ({ owns }: Group) =>
    owns.has('processor') ? ranks.length : ranks.findIndex(word => word === '' || owns.has(word))
  return [...alone, ...shared].sort((a, b) => rank(a) - rank(b))
}
