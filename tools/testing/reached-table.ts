// test/spec/reached.json: what tests must reach of svc (tools/contract/facts.ts), and the test file that reaches each.
// A file that no longer does so fails, so that the table cannot outlive its tests.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FileResult, hasFailed } from './results.ts'

const path = join(import.meta.dirname, '../../test/spec/reached.json')

/** Imitates the servers of svc for the recorder. */
const own = 'test/check-contract.test.ts'
/** Prefers whole agents to parts of them; for host metrics, trees of files to this machine. */
function rank(file: string, fact: string): number {
  if (fact.startsWith('host ')) return file.startsWith('src/signals/metrics/collectors/') ? 0 : 1
  return file.startsWith('test/e2e/') ? 0 : /^src\/program\//.test(file) ? 1 : 2
}

/** Fact → test file. */
export function reachedTable(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
}

/** Facts that a file should reach and did not. Not a fault on a host that lacks what its tests need. */
export function lostFacts(result: Pick<FileResult, 'file' | 'tests' | 'faults' | 'reached'>): string[] {
  const { file, tests, reached } = result
  const isWhole = tests.every(test => test.result !== 'skipped' || test.reason.includes('npm run soak'))
  if (!isWhole || hasFailed(result)) return []
  return Object.entries(reachedTable())
    .filter(([fact, by]) => by === file && !reached.includes(fact))
    .map(
      ([fact]) => `does not reach "${fact}", as test/spec/reached.json says: UPDATE_REACHED=1 corrects that`,
    )
}

/** Writes the facts of `required` reached by these files into the table; the others are kept. */
export function recordFacts(results: readonly FileResult[], required: readonly string[]): void {
  const before = reachedTable()
  const good = results.filter(result => result.file !== own && !hasFailed(result))
  const ran = new Map(good.map(({ file, reached }) => [file, new Set(reached)]))
  const table: Record<string, string> = {}
  for (const fact of required) {
    const known = before[fact]
    const stays = known !== undefined && (ran.get(known)?.has(fact) ?? true)
    const found = [...ran.keys()].filter(file => ran.get(file)!.has(fact))
    const [first] = found.sort((a, b) => rank(a, fact) - rank(b, fact) || (a < b ? -1 : 1))
    const by = stays ? known : first
    if (by !== undefined) table[fact] = by
  }
  writeFileSync(path, `${JSON.stringify(table, undefined, 2)}\n`)
}
