// reads: the tree
// The path of a record in docs/develop/architecture.md is that of the code: each function calls the next.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

const page = 'docs/develop/architecture.md'
/** Calls through an interface that the path of a record may have. */
const mostIndirect = 2

interface Step {
  /** The call by which the step before reaches it; '' for the first one. */
  readonly by: string
  /** That call goes through an interface. */
  readonly indirect: boolean
  readonly name: string
  readonly file: string
}

/** The tables of the page whose rows are steps, each from its first step to its last. */
function pathsOf(text: string): Step[][] {
  const tables = text.split(/\n\| step \| by \| function \| file \|\n\|[-|]+\n/).slice(1)
  return tables.map(table => {
    const rows = table.split('\n\n')[0]!.trim().split('\n')
    return rows.map(row => {
      const match = /^\| [^|]+ \|(?: (⇢ )?`([\w.#]+)`)? \| `([\w.#]+)` \| `([\w./-]+\.ts)` \|$/.exec(row)
      assert.ok(match !== null, `no step: ${row}`)
      return { by: match[2] ?? '', indirect: match[1] !== undefined, name: match[3]!, file: match[4]! }
    })
  })
}

/** The lines of a function, or of a method as `Class.method`. */
function bodyOf({ name, file }: Step): string {
  const lines = readFileSync(file, 'utf8').split('\n')
  const [method, of] = name.split('.').reverse() as [string, string | undefined]
  const from = of === undefined ? 0 : lines.findIndex(line => new RegExp(`\\bclass ${of}\\b`).test(line))
  const starts = new RegExp(of === undefined ? `^(?:export )?function ${method}\\(` : `^  ${method}\\(`)
  const start = from < 0 ? -1 : lines.findIndex((line, i) => i > from && starts.test(line))
  assert.ok(start >= 0, `${file} has no ${name}`)
  const end = lines.indexOf(of === undefined ? '}' : '  }', start)
  return lines.slice(start + 1, end).join('\n')
}

/** Files of the tree that a file imports. */
function importsOf(file: string): string[] {
  const found = readFileSync(file, 'utf8').matchAll(/^(?:import|export) [^;]*?from '(\.[^']+)'/gm)
  return [...found].map(([, to]) => join(dirname(file), to!))
}

function knows(file: string, other: string): boolean {
  if (file === other) return true
  const near = importsOf(file)
  return near.includes(other) || near.some(each => importsOf(each).includes(other))
}

const paths = pathsOf(readFileSync(page, 'utf8'))

for (const path of paths)
  test(`from ${path[0]?.name} to ${path.at(-1)?.name} each function calls the next one`, () => {
    assert.ok(path.length > 2)
    for (const [i, step] of path.entries()) {
      const body = bodyOf(step)
      const next = path[i + 1]
      if (next === undefined) break
      const call = new RegExp(`(?<![\\w$])${next.by.replaceAll('.', '\\.')}\\(`)
      assert.match(body, call, `${step.name} does not call ${next.by}`)
      const known = next.indirect ? importsOf(step.file).includes(next.file) : knows(step.file, next.file)
      assert.equal(known, !next.indirect, `how ${step.file} knows ${next.file}`)
    }
  })

test(`a record comes to the bytes of the exporter through ${mostIndirect} interfaces at most`, () => {
  const [record] = paths
  assert.equal(record?.[0]?.name, 'SocketCapture.#read')
  assert.match(record.at(-1)!.file, /^src\/pipeline\/exporters\//)
  assert.ok(record.filter(({ indirect }) => indirect).length <= mostIndirect)
})
