// What a test file owns while it runs: declared in the file, derived from the helpers it imports, and checked here. A
// line `// owns: WHAT[, WHAT]` among the first ten of a test file or of a helper:
//
//   host         everything in the kernel, cgroups, mounts, settings of the host: one such file at a time
//   ports        programs in the kernel, and the ports that the runner assigns (freePort): its agents look at no
//                others. Any number of such files at a time, and none that owns the host
//   load         it keeps processors busy: one such file at a time, whatever else it owns
//   processor    it measures time, load, or memory that other programs change: nothing runs beside it
//   process      a process of its own: it measures the heap, or changes global state of a process
//
// Without the line a file owns nothing, loads no programs into the kernel, and shares a process with others. A file that
// imports a helper with such a line owns the same, and must declare it.
import type { ImportGraph } from '../imports.ts'

const words = ['host', 'ports', 'load', 'processor', 'process'] as const
type Word = (typeof words)[number]

export type Owns = ReadonlySet<Word>

/** What a file declares to own. Throws for an unknown word. */
export function readOwns(text: string): Owns {
  const lines = text.split('\n', 10).filter(line => /^\s*(?:\/\/|\/?\*)\s*owns\b/i.test(line))
  if (lines.length > 1) throw new Error('has two "// owns:" lines: put all words in one')
  const owns = new Set<Word>()
  if (lines[0] !== undefined) {
    const said = /^\/\/ owns: (.+)$/.exec(lines[0])?.[1]
    if (said === undefined)
      throw new Error(`"${lines[0]}" is not an "owns" line: write "// owns: WHAT[, WHAT]"`)
    for (const text of said.split(/, */)) {
      const word = words.find(each => each === text)
      if (word === undefined) throw new Error(`"owns: ${text}": unknown word: use ${words.join(', ')}`)
      owns.add(word)
    }
  }
  // Running alone includes everything else.
  if (owns.has('processor')) owns.add('host').add('load')
  if (owns.has('host')) owns.add('ports')
  return owns
}

/** Faults of a file: what it owns through its helpers without a declaration, and what would block other tests. */
export function ownsFaults(file: string, graph: ImportGraph): string[] {
  const read = (path: string): Owns => {
    try {
      return readOwns(graph.text(path))
    } catch (error) {
      throw new Error(`${path}: ${(error as Error).message}`)
    }
  }
  const own = read(file)
  const faults: string[] = []
  if (/\b(?:test|it|suite|describe)\.only\(|\bonly: true\b/.test(graph.text(file)))
    faults.push(
      `${file}: has an "only", which hides other tests: name tests with --test-name-pattern instead`,
    )
  // Imports from src/ are under test, and have no declarations.
  for (const helper of graph.reached(file, each => !each.startsWith('src/') && !each.startsWith('ui/'))) {
    if (helper === file || helper.endsWith('.test.ts') || !/^(?:test|tools)\//.test(helper)) continue
    for (const word of read(helper))
      if (!own.has(word))
        faults.push(`${file}: imports ${helper}, which owns "${word}": add "// owns: ${word}"`)
  }
  return faults
}

/** Whether two files may run at the same time. */
export function together(a: Owns, b: Owns): boolean {
  if (a.has('processor') || b.has('processor')) return false
  if (a.has('load') && b.has('load')) return false
  const alone = (one: Owns, other: Owns) => one.has('host') && (other.has('host') || other.has('ports'))
  return !alone(a, b) && !alone(b, a)
}
