// A recipe of docs/develop, as a program follows it: its blocks of code are files, its diffs are edits, its commands run.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Recipe {
  /** Path in the tree → text of a file that it adds. */
  readonly files: ReadonlyMap<string, string>
  /** Path in the tree → lines as a diff has them: kept ones, and those with + or - in front. */
  readonly edits: ReadonlyMap<string, readonly string[]>
  /** Lines for a shell. */
  readonly commands: readonly string[]
}

/** Reads the page. A block says which file it is behind the language: ```ts src/signals/traces/protocols/nut.ts */
export function readRecipe(page: string): Recipe {
  const files = new Map<string, string>()
  const edits = new Map<string, readonly string[]>()
  const commands: string[] = []
  for (const [, language, path, text] of page.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```$/gms)) {
    const lines = text!.trimEnd().split('\n')
    if (language === 'sh') commands.push(...lines)
    else if (path !== undefined && language === 'diff') edits.set(path, lines)
    else if (path !== undefined) files.set(path, text!)
  }
  return { files, edits, commands }
}

/** Does by hand what the recipe says, below `root`. */
export function follow({ files, edits }: Recipe, root: string): void {
  for (const [path, text] of files) {
    const file = join(root, path)
    assert.ok(!existsSync(file), `${path} is there already: the recipe needs another example`)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  for (const [path, change] of edits) {
    const file = join(root, path)
    writeFileSync(file, edited(readFileSync(file, 'utf8').split('\n'), change, path).join('\n'))
  }
}

function edited(lines: readonly string[], change: readonly string[], path: string): string[] {
  const result = [...lines]
  let at = 0
  // What is added stands before the line that is named next, else behind the last one.
  const added: string[] = []
  for (const line of change) {
    const text = line.slice(1)
    if (line[0] === '+') {
      added.push(text)
      continue
    }
    const found = result.indexOf(text, at)
    assert.ok(found >= 0, `${path} has no line "${text}" any more, which its recipe names`)
    result.splice(found, line[0] === '-' ? 1 : 0, ...added)
    at = found + added.length + (line[0] === '-' ? 0 : 1)
    added.length = 0
  }
  result.splice(at, 0, ...added)
  return result
}
