// test/spec/reached.json: what must be reached of svc (tools/contract/facts.ts), and the test file that reaches it. A file that
// does so no more fails, so that the table cannot outlive the tests that it names.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FileResult, hasFailed } from './results.ts'

const path = join(import.meta.dirname, '../../test/spec/reached.json')

/** Plays the servers of svc for the recorder. */
const own = 'test/check-contract.test.ts'
/** Whole agents before parts of them. */
const rank = (file: string) => (file.startsWith('test/e2e/') ? 0 : /^src\/(?:agent|cli)\//.test(file) ? 1 : 2)

/** Fact → test file. */
export function reachedTable(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
}

/** Faults of a file: what it is to reach and did not. A host without what its tests need is none. */
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

/** Writes what these files reach of `required` into the table; what others reach stays. */
export function recordFacts(results: readonly FileResult[], required: readonly string[]): void {
  const before = reachedTable()
  const ran = new Map(results.map(({ file, reached }) => [file, new Set(reached)]))
  const files = [...ran.keys()]
    .filter(file => file !== own)
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
  const table: Record<string, string> = {}
  for (const fact of required) {
    const known = before[fact]
    const stays = known !== undefined && (ran.get(known)?.has(fact) ?? true)
    const by = stays ? known : files.find(file => ran.get(file)!.has(fact))
    if (by !== undefined) table[fact] = by
  }
  writeFileSync(path, `${JSON.stringify(table, undefined, 1)}\n`)
}
