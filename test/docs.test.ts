// reads: the tree
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { treeFiles } from '../tools/git.ts'
import { anchor } from '../tools/markdown.ts'

const pages = treeFiles('.', '*.md')

test('every link between the pages leads to a file', () => {
  const broken: string[] = []
  let links = 0
  for (const page of pages) {
    for (const [, target] of readFileSync(page, 'utf8').matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)) {
      links++
      if (!existsSync(join(dirname(page), target!))) broken.push(`${page}: ${target}`)
    }
  }
  assert.ok(links > 0)
  assert.deepEqual(broken, [])
})

test('every link to a part of a page leads to a heading or a mark of it', () => {
  const broken: string[] = []
  let links = 0
  for (const page of pages) {
    for (const [, target, part] of readFileSync(page, 'utf8').matchAll(
      /\]\((?!https?:)([^)#\s]*)#([^)]+)\)/g,
    )) {
      links++
      const file = target === '' ? page : join(dirname(page), target!)
      if (existsSync(file) && !anchorsOf(file).has(part!)) broken.push(`${page}: ${target}#${part}`)
    }
  }
  assert.ok(links > 0)
  assert.deepEqual(broken, [])
})

const anchors = new Map<string, ReadonlySet<string>>()

function anchorsOf(page: string): ReadonlySet<string> {
  let found = anchors.get(page)
  if (found === undefined) {
    const text = readFileSync(page, 'utf8')
    const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      anchor(heading!.replaceAll('`', '')),
    )
    const marks = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, mark]) => mark!)
    found = new Set([...headings, ...marks])
    anchors.set(page, found)
  }
  return found
}

test('every file of the tree that a page names exists', () => {
  const missing: string[] = []
  let named = 0
  for (const page of pages) {
    const text = readFileSync(page, 'utf8')
    for (const [, path] of text.matchAll(
      /`(?:bash |node )?((?:src|bpf|native|test|tools|bench|docs|bin)\/[\w./-]*)[` ]/g,
    )) {
      named++
      if (!existsSync(path!)) missing.push(`${page}: ${path}`)
    }
  }
  assert.ok(named > 0)
  assert.deepEqual(missing, [])
})
