// reads: the tree
// What pages name exists: commands, flags, paths of the API, keys of the configuration.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import { loadConfig, schema } from '../src/config/index.ts'
import { profileKinds } from '../src/foundation/runtime/runtime-profiler.ts'
import { isBranch, type Keys, join as keyPath } from '../src/foundation/schema/tree.ts'
import { parseArguments } from '../src/program/cli/arguments.ts'
import { commands } from '../src/program/cli/index.ts'
import { subsystems } from '../src/program/subsystems/index.ts'
import { operations } from '../src/view/api/routes.ts'
import type { AgentView } from '../src/view/api/types.ts'
import { blocksIn, blocksOf, shellLines, svcWords, userPages } from './helpers/doc-blocks.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-docs-'))
after(() => rmSync(directory, { recursive: true }))

const pages = userPages()
const blocks = pages.flatMap(blocksOf)

/** Programs that a block may call without being marked. */
const programs = /^(svc|bin\/svc|curl|cat|ls|head|tail|grep|sort|true|sleep|mkdir|export)$/
/** Why a command line of svc cannot be, '' where it can. */
function svcFault(words: readonly string[]): string {
  const line = parseArguments(words, commands)
  if (typeof line === 'string') return line
  const choices = line.command.word?.choices
  const [word] = line.args.words
  if (choices === undefined || word === undefined || /^[A-Z]+$/.test(word) || line.command.foreignFlags)
    return ''
  return choices.includes(word) ? '' : `${word} is none of ${choices}`
}

const view = {
  profiles: profileKinds,
  pages: subsystems.flatMap(subsystem => subsystem.pages ?? []),
  ui: {},
  pageDirectory: '',
} as unknown as AgentView
const paths = new Set(operations(view, '/metrics').map(({ path }) => path))

/** Why a URL of the agent leads nowhere, '' where it leads somewhere. */
function urlFault(url: string): string {
  const { port, pathname } = new URL(url)
  if (port === '9100') return pathname === '/metrics' || pathname === '/' ? '' : pathname
  return pathname === '/' || pathname.startsWith('/ui') || paths.has(pathname) ? '' : pathname
}

/** Every key and branch of the configuration. */
function keysOf(keys: Keys, path = ''): string[] {
  return Object.entries(keys).flatMap(([name, node]) => {
    const here = keyPath(path, name)
    return isBranch(node) ? [here, ...keysOf(node.keys, here)] : [here]
  })
}
const known = new Set(keysOf(schema.keys))

/** Whether it is a key, or stands inside the value of one: an item of a list, a key of a map. */
function isKey(path: string): boolean {
  const signal = path.replace(/SIGNAL|<signal>/, 'traces').replace(/\[\d*\]|\.<.*/g, '')
  if (known.has(signal)) return true
  const parent = signal.slice(0, signal.lastIndexOf('.'))
  return parent.includes('.') && known.has(parent) && !hasKeysBelow(parent)
}

function hasKeysBelow(path: string): boolean {
  return [...known].some(key => key.startsWith(`${path}.`))
}

/** Whether the Helm chart has such a value. */
function isValue(path: string): boolean {
  let node: unknown = parse(readFileSync('deploy/helm/svc/values.yaml', 'utf8'))
  for (const name of path.split('.')) {
    if (typeof node !== 'object' || node === null || !(name in node)) return false
    node = (node as Record<string, unknown>)[name]
  }
  return true
}

test('every command of svc in a block of the shell is one, with flags that it has', () => {
  const wrong: string[] = []
  let seen = 0
  for (const { place, language, text } of blocks) {
    if (language !== 'sh') continue
    for (const words of shellLines(text).flatMap(svcWords)) {
      seen++
      const fault = svcFault(words)
      if (fault !== '') wrong.push(`${place}: svc ${words.join(' ')}: ${fault}`)
    }
  }
  assert.ok(seen > 20)
  assert.deepEqual(wrong, [])
})

test('a block that is not run says why, and one that is run calls only what is there', () => {
  const wrong = blocks.flatMap(({ place, language, notRun, text }) => {
    if (language !== 'sh' || notRun !== '') return []
    const called = shellLines(text).flatMap(line =>
      line.split(/&&|\||;/).map(
        command =>
          command
            .trim()
            .split(/\s+/)
            .find(word => !/^\w+=/.test(word)) ?? '',
      ),
    )
    const foreign = called.filter(name => !programs.test(name))
    return foreign.length > 0 ? [`${place}: ${foreign.join(', ')}: mark the block \`\`\`sh not-run: WHY`] : []
  })
  assert.deepEqual(wrong, [])
})

test('every command of svc in running text is one', () => {
  const wrong: string[] = []
  let seen = 0
  for (const page of [...pages, 'docs/reference/commands.md']) {
    for (const [, command] of readFileSync(page, 'utf8').matchAll(/`((?:bin\/)?svc [a-z-][^`]*)`/g)) {
      for (const words of svcWords(command!.replace(/ \[flags\].*/, ''))) {
        seen++
        const fault = svcFault(words.filter(word => word !== '…'))
        if (fault !== '') wrong.push(`${page}: ${command}: ${fault}`)
      }
    }
  }
  assert.ok(seen > 50)
  assert.deepEqual(wrong, [])
})

test('every path of the API that a page names is served', () => {
  const wrong: string[] = []
  let seen = 0
  for (const page of pages) {
    const text = readFileSync(page, 'utf8')
    for (const [url] of text.matchAll(/http:\/\/(?:127\.0\.0\.1|localhost):(?:19090|9100)[\w/.-]*/g)) {
      seen++
      const fault = urlFault(url.replace(/\.$/, ''))
      if (fault !== '') wrong.push(`${page}: ${url}`)
    }
    for (const [, path] of text.matchAll(/`(?:GET|POST) (\/[\w/.-]*)(?!\{)[?`]/g)) {
      seen++
      if (!paths.has(path!)) wrong.push(`${page}: ${path}`)
    }
  }
  assert.ok(seen > 20)
  assert.deepEqual(wrong, [])
})

test('every key of the configuration that a page names is one', () => {
  const wrong: string[] = []
  let seen = 0
  const root = Object.keys(schema.keys).join('|')
  const named = new RegExp(`\`((?:${root})\\.[a-z_.<>A-Z[\\]0-9]+)(?:: [^\`]*)?\``, 'g')
  for (const page of pages) {
    // Behind that, mistakes are shown.
    const [text = ''] = readFileSync(page, 'utf8').split('## Configuration errors')
    for (const [, path] of text.matchAll(named)) {
      seen++
      if (/\.(json|ya?ml|md)$/.test(path!)) continue
      const isOfChart = page === 'docs/kubernetes.md' && isValue(path!)
      if (!isKey(path!) && !isOfChart) wrong.push(`${page}: ${path}`)
    }
  }
  assert.ok(seen > 100)
  assert.deepEqual(wrong, [])
})

test('every configuration in a page is one that svc takes', () => {
  const wrong: string[] = []
  let seen = 0
  for (const { place, language, notConfig, text } of blocks) {
    if (language !== 'yaml' || notConfig !== '') continue
    const [, first = ''] = /^([\w-]+):/m.exec(text) ?? []
    if (!(first in schema.keys)) continue // of another program
    seen++
    const file = join(directory, `${seen}.yaml`)
    // Files that the reader is to make.
    writeFileSync(file, text.replace(/\$\{file:[^}]*\}/g, 'secret'))
    for (const { key, message } of loadConfig({ path: file, explicit: true, env: {} }).problems)
      wrong.push(`${place}: ${key}: ${message}`)
  }
  assert.ok(seen > 10)
  assert.deepEqual(wrong, [])
})

test('blocks are found with why they are not run, and with the output that they promise', () => {
  const text =
    '# A\n\n```sh not-run: needs a cluster\nhelm x\n```\n\n```sh\nsvc status\n```\n\n```text\nup\n```\n'
  const found = blocksIn('a.md', text)
  assert.deepEqual(
    found.map(({ place, language, notRun, output }) => [place, language, notRun, output]),
    [
      ['a.md:3', 'sh', 'needs a cluster', ''],
      ['a.md:7', 'sh', '', 'up\n'],
      ['a.md:11', 'text', '', ''],
    ],
  )
  assert.deepEqual(shellLines('a \\\n  b  # why\n\n# c\n'), ['a    b'])
  assert.deepEqual(svcWords('A=1 sudo svc top --once | head'), [['top', '--once']])
  assert.deepEqual(svcWords('kubectl -n svc exec ds/svc -- svc doctor && docker run svc run'), [['doctor']])
  assert.match(svcFault(['topp']), /did you mean top/)
  assert.match(svcFault(['top', '--onec']), /--once/)
  assert.equal(urlFault('http://127.0.0.1:19090/statuss'), '/statuss')
  assert.equal(isKey('otlp.endpiont'), false)
  assert.equal(isKey('agent.ebpf.network.http'), true)
})
