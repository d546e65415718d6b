// owns: host
// reads: the tree
// The recipes are followed to the letter, in a copy of the tree: what they say is what a new unit takes. By default the
// files are written, checked and tested; in a soak the commands of the recipes run, too, and the whole tree is checked.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { treeFiles } from '../tools/git.ts'
import { withoutBpf } from './helpers/compile-bpf.ts'
import { cleanEnvironment } from './helpers/program-under-test.ts'
import { follow, type Recipe, readRecipe } from './helpers/recipe.ts'
import { onlyInSoak, soak } from './helpers/soak.ts'

const root = join(import.meta.dirname, '..')
/** Where the generators of tools/ write. */
const generated = /^(bpf\/include\/gen|src\/kernel\/gen|docs|deploy)\//
let tree: string

before(() => {
  // Beside the original, so that what is large can be linked: nothing in it is written in place but dist.
  mkdirSync(join(root, 'build'), { recursive: true })
  tree = mkdtempSync(join(root, 'build', 'recipes-'))
  const list = treeFiles(root).join('\0')
  const packed = execFileSync('tar', ['-c', '--null', '-T', '-'], {
    cwd: root,
    input: list,
    maxBuffer: 2 ** 28,
  })
  execFileSync('tar', ['-x'], { cwd: tree, input: packed })
  mkdirSync(join(tree, 'build'))
  run('git init -q')
  if (!soak) {
    symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
    return
  }
  for (const file of readdirSync(join(root, 'build')))
    if (file.endsWith('.sum')) copyFileSync(join(root, 'build', file), join(tree, 'build', file))
  execFileSync('cp', ['-al', join(root, 'node_modules'), tree])
  execFileSync('cp', ['-a', join(root, 'dist'), tree])
})

after(() => {
  if (tree !== undefined) rmSync(tree, { recursive: true, force: true })
})

/** Each file of the copy with what is in it. */
function snapshot(): Map<string, string> {
  const content = (path: string) =>
    lstatSync(path).isSymbolicLink() ? readlinkSync(path) : readFileSync(path)
  const digest = (path: string) => createHash('sha256').update(content(path)).digest('hex')
  return new Map(treeFiles(tree).map(file => [file, digest(join(tree, file))]))
}

function run(command: string): void {
  const env = cleanEnvironment() // tests in it are to be short
  const path = `${dirname(process.execPath)}:${env.PATH}`
  const { status, stdout, stderr } = spawnSync('bash', ['-ec', command], {
    cwd: tree,
    env: { ...env, PATH: path },
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
  assert.equal(status, 0, `${command}\n${stdout}\n${stderr}`)
}

interface Touched {
  readonly added: readonly string[]
  readonly edited: readonly string[]
}

function difference(from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): Touched {
  for (const file of from.keys()) assert.ok(to.has(file), `${file} is gone`)
  const others = [...to].filter(([file, digest]) => from.get(file) !== digest).map(([file]) => file)
  return { added: others.filter(file => !from.has(file)), edited: others.filter(file => from.has(file)) }
}

/** Follows a recipe to its end; throws where it takes more than it may, or its commands write what is no generated file. */
function prove(recipe: Recipe): void {
  const original = snapshot()
  follow(recipe, tree)
  const touched = snapshot()
  const { added, edited } = difference(original, touched)
  assert.ok(added.length + edited.length <= 4, [...added, ...edited].join())
  assert.ok(edited.length <= 1, edited.join())
  if (soak) for (const command of recipe.commands) run(command)
  else
    run(
      `node tools/gen-protocols.ts && bash tools/test ${added.filter(file => file.endsWith('.test.ts')).join(' ')}`,
    )
  const written = difference(touched, snapshot())
  for (const file of [...written.added, ...written.edited])
    assert.match(file, generated, `${file} was written by a command of the recipe`)
  checkSources([...added, ...edited].filter(file => file.endsWith('.ts')))
}

/** Types of these files; in the long run of all, and how they are written. */
function checkSources(files: readonly string[]): void {
  const part = { extends: '../tsconfig.json', include: [], files: files.map(file => `../${file}`) }
  writeFileSync(join(tree, 'build/tsconfig.json'), JSON.stringify(part))
  run(`node node_modules/typescript/bin/tsc -p ${soak ? '.' : 'build/tsconfig.json'}`)
  if (soak)
    run(`node_modules/@biomejs/cli-linux-${process.arch}/biome check --error-on-warnings ${files.join(' ')}`)
}

const recipeOf = (name: string) =>
  readRecipe(readFileSync(join(tree, 'docs/develop', `recipe-${name}.md`), 'utf8'))

test('a collector takes what its recipe says: four files at most, of which one is edited', () => {
  prove(recipeOf('collector'))
})

test('a protocol takes what its recipe says: four files at most, of which one is edited', () => {
  prove(recipeOf('protocol'))
})

test('a subsystem takes what its recipe says: four files at most, of which one is edited', () => {
  prove(recipeOf('subsystem'))
})

test('the tree with all three is as it has to be: architecture, generated files', {
  skip: onlyInSoak,
}, () => {
  run('node tools/check-architecture.ts')
  run('bash tools/generate --check')
})

test('operations of the new protocol become spans', { skip: onlyInSoak || withoutBpf }, () => {
  const file = 'test/e2e/protocols/nut-spans.test.ts'
  copyFileSync(join(tree, 'test/fixtures/recipes/nut-spans.ts'), join(tree, file))
  run(`bash tools/test ${file}`)
})
