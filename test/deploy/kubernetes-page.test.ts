// docs/kubernetes.md: what it shows is what the chart and the program take.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { schema } from '../../src/config/index.ts'
import { isBranch, type Keys } from '../../src/foundation/schema/tree.ts'
import { parseArguments } from '../../src/program/cli/arguments.ts'
import { commands } from '../../src/program/cli/index.ts'
import { chart, renderChart, withoutHelmRender } from '../helpers/helm-chart.ts'
import { objectsOf } from '../helpers/helm-objects.ts'
import { combinations } from '../helpers/helm-values.ts'
import { faultsOf } from '../helpers/kube-manifests.ts'

const file = resolve(import.meta.dirname, '../../docs/kubernetes.md')
const page = readFileSync(file, 'utf8')
const blocks = (language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\b.*\\n([^]*?)^\`\`\``, 'gm'))].map(match => match[1]!)
const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'))

test('every block of values is taken, and renders', { skip: withoutHelmRender }, () => {
  const isValid = new Ajv({ strict: false, formats: { regex: true } }).compile(
    JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')),
  )
  const shown = blocks('yaml').map(text => parse(text))
  assert.equal(shown.length, 3)
  for (const result of renderChart(shown.map(each => ({ values: [each] })))) {
    assert.ok(isValid(result.values), JSON.stringify(isValid.errors))
    assert.deepEqual(faultsOf(objectsOf(result)), [])
  }
})

test('every value and key that it names is there', () => {
  const settings = [...page.matchAll(/(?:--set |`|,)([a-zA-Z]+(?:\.[a-zA-Z_]+)*)=/g)].map(match => match[1]!)
  assert.ok(settings.length > 10)
  const config = schema.keys as Keys
  for (const path of settings) assert.ok(has(values, path.split('.')), `the chart has no value ${path}`)
  const named = [...page.matchAll(/`([a-z]+(?:\.[a-zA-Z_]+)+)`/g)].map(match => match[1]!)
  for (const path of named)
    if (!path.endsWith('.yaml') && path !== 'host.name' && path !== 'k8s.node.name')
      assert.ok(has(values, path.split('.')) || isKey(config, path.split('.')), `nothing has a key ${path}`)
})

test('every command of svc is one, and every link leads somewhere', () => {
  const words = [...page.matchAll(/-- svc ([a-z ]+)/g)].map(match => match[1]!.trim().split(' '))
  assert.ok(words.length >= 3)
  for (const line of words) assert.notEqual(typeof parseArguments(line, commands), 'string', line.join(' '))
  for (const [, to] of page.matchAll(/\]\(([^)#]+)[^)]*\)/g))
    assert.ok(existsSync(join(dirname(file), to!)), to)
})

test('the number of combinations that it tells is the one that is tested', () => {
  assert.equal(Number(/(\d+) sets of values/.exec(page)![1]), Object.keys(combinations).length)
})

function has(at: unknown, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true
  if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false
  return has((at as Record<string, unknown>)[name], rest)
}

function isKey(keys: Keys, [name = '', ...rest]: readonly string[]): boolean {
  const node = Object.hasOwn(keys, name) ? keys[name] : undefined
  if (node === undefined) return false
  return rest.length === 0 || (isBranch(node) && isKey(node.keys, rest))
}
