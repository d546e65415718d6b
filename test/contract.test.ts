// reads: the tree
import assert from 'node:assert/strict'
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { schema } from '../src/config/schema.ts'
import { type Branch, isBranch } from '../src/foundation/schema/tree.ts'
import { clouds } from '../src/identity/discovery/index.ts'
import { groups } from '../src/kernel/need.ts'
import { needs } from '../src/kernel/needs.ts'
import { processors } from '../src/pipeline/processors/index.ts'
import { commands } from '../src/program/cli/index.ts'
import { table } from '../src/program/doctor/table.ts'
import { backends } from '../src/signals/capture/index.ts'
import { collectors, extraCollectors } from '../src/signals/metrics/collectors/index.ts'
import { runtimes } from '../src/signals/profiles/unwinders/index.ts'
import { protocols } from '../src/signals/traces/protocols/index.ts'

const root = dirname(import.meta.dirname)

/** What every unit of every list shows of itself. */
interface Named {
  readonly name: string
  readonly summary: string
}

/** Every list of units that there is, by the file that holds it. */
const lists: Readonly<Record<string, readonly Named[]>> = {
  'src/signals/traces/protocols/index.ts': protocols,
  'src/signals/capture/index.ts': backends,
  'src/program/cli/index.ts': commands,
  'src/signals/metrics/collectors/index.ts': [...collectors, ...extraCollectors],
  'src/pipeline/processors/index.ts': processors,
  'src/signals/profiles/unwinders/index.ts': runtimes,
  'src/identity/discovery/index.ts': clouds,
}

/** Commands, collectors and processors are listed in help texts and tables, without full stops. */
const isSentence: Readonly<Record<string, RegExp>> = {
  'src/program/cli/index.ts': /^[a-z].*[^.]$/,
  'src/signals/metrics/collectors/index.ts': /^[A-Z].*[^.]$/,
  'src/pipeline/processors/index.ts': /^[A-Z].*[^.]$/,
}

const isSnakeCase = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/

test('every list of units in the tree is held to this contract', () => {
  const found: string[] = []
  // Subsystems are shown by their states, and have no summary.
  for (const list of globSync('src/**/index.ts', { cwd: root, exclude: ['src/program/subsystems/**'] })) {
    // src/config/index.ts is the door of its area, not a list.
    if (/^export const/m.test(readFileSync(join(root, list), 'utf8'))) found.push(list)
  }
  assert.deepEqual(found.toSorted(), Object.keys(lists).toSorted())
})

for (const [file, units] of Object.entries(lists)) {
  test(`${file}: names are unique and well formed, and each unit says in a sentence what it is`, () => {
    assert.ok(units.length > 0)
    const names = units.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length, String(names))
    const summaries = units.map(({ summary }) => summary)
    assert.equal(new Set(summaries).size, summaries.length)
    for (const { name, summary } of units) {
      assert.match(name, file.startsWith('src/program/cli/') ? /^[a-z]+(-[a-z]+)*$/ : isSnakeCase)
      assert.match(summary, isSentence[file] ?? /^[A-Z].*[^.]\.$/, name)
      assert.ok(summary.length <= 100, `${name}: ${summary.length} characters`)
    }
  })

  test(`${file}: each unit stands in the file of its name`, () => {
    const files = readdirSync(dirname(join(root, file)))
    for (const { name } of units) {
      const own = `${file.startsWith('src/signals/metrics/collectors/') ? name : name.replaceAll('_', '-')}.ts`
      assert.ok(files.includes(own), `${relative(root, dirname(join(root, file)))} has no ${own}`)
    }
  })
}

test('every need has a name of its own, in words, a group, and says what it is for and what it costs', () => {
  const names = table.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const need of needs) assert.ok(names.includes(need.name), need.name)
  for (const { name, group, summary, impact } of table) {
    assert.match(name, /^[A-Za-z]+( [A-Za-z]+)*$/)
    assert.ok(group in groups, name)
    assert.match(summary, /^[A-Zs].*[^.]$/, name)
    assert.match(impact, /^[a-z].*[^.]$/, name)
  }
})

test('every fault of every need says what it means and how to fix it, and stands on the page of needs', () => {
  const page = readFileSync(join(root, 'docs/reference/needs.md'), 'utf8')
  let faults = 0
  for (const row of table) {
    const section = page
      .split(/^##+ /m)
      .find(each => each.toLowerCase().startsWith(`${row.name.toLowerCase()}\n`))
    assert.ok(section, row.name)
    for (const [key, { state, what, hints }] of Object.entries(row.faults)) {
      const at = `${row.name}: ${key}`
      faults++
      assert.match(key, isSnakeCase, at)
      assert.match(what, /^[^A-Z\s]?.*[^.]$/, at)
      assert.ok(Object.keys(hints).length > 0, at)
      for (const hint of Object.values(hints)) assert.match(hint, /^\S.*[^.\s]$/, at)
      const line = section.split('\n').find(each => each.startsWith(`| ${state} | \`${key}\` | ${what}`))
      assert.ok(line, at)
      for (const hint of Object.values(hints))
        assert.ok(line.includes(hint.replaceAll('|', '\\|')), `${at}: ${hint}`)
    }
  }
  assert.ok(faults > 50, String(faults))
})

test('what is missing for want of a capability has a hint for each kind of installation', () => {
  for (const { name, capabilities = [], faults } of table) {
    if (capabilities.length === 0) continue
    const granting = Object.values(faults).filter(({ hints }) =>
      capabilities.every(each => hints.systemd?.includes(`CAP_${each}`) && hints.container?.includes(each)),
    )
    assert.ok(granting.length > 0, name)
    for (const { hints } of granting)
      for (const each of capabilities)
        assert.ok(hints.kubernetes?.includes(each) && hints.any?.includes(each))
  }
})

test('every command explains its flags, and no flag means two things', () => {
  const flags = new Map<string, string>()
  for (const command of commands) {
    const names = command.flags.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length, command.name)
    for (const { name, value = '', summary } of command.flags) {
      assert.match(name, /^[a-z]+(-[a-z]+)*$/)
      assert.match(value, /^[A-Z]*$/)
      assert.match(summary, /^[a-z].*[^.]$/s)
      const meaning = `${value} ${summary}`
      assert.equal(flags.get(name) ?? meaning, meaning, `--${name} of ${command.name}`)
      flags.set(name, meaning)
    }
  }
})

test('every key and every branch of the configuration is named alike and described in sentences', () => {
  let keys = 0
  const visit = (branch: Branch, path: string): void => {
    for (const [name, node] of Object.entries(branch.keys)) {
      const at = path === '' ? name : `${path}.${name}`
      // Below nodeexporter some are spelled as the flags of the exporter that it replaces.
      const isName = at.startsWith('agent.nodeexporter.') ? /^[a-z][A-Za-z0-9_]*$/ : isSnakeCase
      assert.match(name, isName, at)
      assert.match(node.description, /^[A-Z`].*\.$/s, at)
      if (isBranch(node)) visit(node, at)
      else keys++
    }
  }
  visit(schema, '')
  assert.ok(keys > 100)
})

test('the key that switches a protocol is there', () => {
  const { network } = schema.keys.agent.keys.ebpf.keys
  for (const { name, key } of protocols) assert.ok(Object.hasOwn(network.keys, key), name)
})
