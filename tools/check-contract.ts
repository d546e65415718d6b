// Checks the contract: test/spec lists as data what svc promises. Each key is in the schema and read by some code, each
// metric is declared and set in a test, each document has its fields, and each path, status, exit code and message of
// the reference is reached by a test (test/spec/reached.json, enforced by the test runner). Prints a line for each
// fault and exits 1 if there is any.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { exitCodes } from '../src/foundation/lib/start-error.ts'
import { everywhere } from '../src/program/cli/arguments.ts'
import { commands } from '../src/program/cli/index.ts'
import { documentFaults } from './contract/documents.ts'
import { requiredFacts } from './contract/facts.ts'
import { unreadKeys } from './contract/key-reads.ts'
import { keyFaults } from './contract/keys.ts'
import { metricFaults } from './contract/metrics.ts'
import { differences, service } from './contract/spec.ts'
import { reachedTable } from './testing/reached-table.ts'

/** Missing commands and exit codes. */
function processFaults(): string[] {
  const names = commands.map(({ name }) => name)
  const flags = new Set([...commands.flatMap(each => each.flags), ...everywhere].map(({ name }) => name))
  const codes = Object.keys(exitCodes).join()
  return [
    ...service.commands
      .filter(name => !names.includes(name))
      .map(name => `svc ${name}: promised, but there is no such command`),
    ...service.flags
      .filter(name => !flags.has(name))
      .map(name => `--${name}: promised, but there is no such flag`),
    ...(codes === Object.keys(service.exit_codes).join() ? [] : [`exit codes are ${codes}`]),
  ]
}

/** Facts that no test reaches, and obsolete entries of the table. */
function reachFaults(root: string): string[] {
  const table = reachedTable()
  const required = new Set(requiredFacts())
  return [
    ...[...required].filter(fact => table[fact] === undefined).map(fact => `${fact}: no test reaches it`),
    ...Object.entries(table).flatMap(([fact, file]) => {
      if (!required.has(fact)) return [`${fact}: in test/spec/reached.json, but not required`]
      return existsSync(join(root, file)) ? [] : [`${fact}: ${file} should reach it, but does not exist`]
    }),
  ]
}

/** All faults of the tree at `root`. */
export function contractFaults(root: string): string[] {
  return [
    ...keyFaults(),
    ...unreadKeys(root),
    ...metricFaults(root),
    ...documentFaults(),
    ...processFaults(),
    ...reachFaults(root),
  ]
}

/** Faults without any of these marks, and the marks that no fault contains any more. */
export function without(faults: readonly string[], known: Readonly<Record<string, string>>): string[] {
  const marks = Object.keys(known)
  return [
    ...faults.filter(fault => !marks.some(mark => fault.includes(mark))),
    ...marks
      .filter(mark => !faults.some(fault => fault.includes(mark)))
      .map(mark => `${mark}: is not a fault any more: delete it from test/spec/differences.yaml`),
  ]
}

if (import.meta.main) {
  const { accepted, pending } = differences
  const faults = without(contractFaults(process.cwd()), { ...accepted, ...pending })
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length > 0 ? 1 : 0
}
