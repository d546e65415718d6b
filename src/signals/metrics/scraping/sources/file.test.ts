import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { until } from '../../../../../test/helpers/program.ts'
import { isAtFault, ReportedTargets } from '../../../../../test/helpers/reported-targets.ts'
import type { TargetSource } from '../source.ts'
import { openSource } from './index.ts'

const quick = 100
/** Whatever happens within a test happens by the watch. */
const never = 3_600_000

let directory: string
let told: ReportedTargets
let source: TargetSource

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-file-sd-'))
  told = new ReportedTargets()
})
afterEach(() => {
  source.stop()
  rmSync(directory, { recursive: true })
})

function start(patterns: readonly string[], refreshMs = never): void {
  source = openSource(
    { kind: 'file', patterns: patterns.map(each => join(directory, each)), refreshMs },
    told.options,
  )
  source.start()
}

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text)
}

test('JSON and YAML say the same, and each target knows its file', async () => {
  write('a.json', '[{"targets":["a:1","a:2"],"labels":{"team":"blue"}},{"targets":["a:3"]}]')
  write('b.yml', "- targets: ['b:1']\n  labels: {team: red, port: 8080, on: yes, empty: ''}\n")
  start(['*.json', 'b.yml'])
  await told.has('a:1,a:2,a:3,b:1', source)
  assert.deepEqual(told.at('a:2'), {
    __address__: 'a:2',
    __meta_filepath: join(directory, 'a.json'),
    team: 'blue',
  })
  assert.deepEqual(told.at('b:1'), {
    __address__: 'b:1',
    __meta_filepath: join(directory, 'b.yml'),
    team: 'red',
    port: '8080',
    on: 'yes',
    empty: '',
  })
  assert.deepEqual(
    told.groups.map(group => group.source),
    [0, 1].map(at => `${join(directory, 'a.json')}:${at}`).concat(`${join(directory, 'b.yml')}:0`),
  )
  const { updatedMs, ...state } = source.state
  assert.ok(updatedMs > 0)
  assert.deepEqual(state, { connected: true, reason: '', hint: '', groups: 3, targets: 4 })
})

test('files that change, come and go are seen by the watch', async () => {
  write('a.json', '[{"targets":["a:1"]}]')
  start(['*.json'])
  await told.has('a:1', source)
  const [before] = told.groups
  write('b.json', '[{"targets":["b:1"]}]')
  await told.has('a:1,b:1', source)
  assert.equal(told.groups[0], before, 'what has not changed is the same object')
  write('new', '[{"targets":["a:9"]}]')
  renameSync(join(directory, 'new'), join(directory, 'a.json'))
  await told.has('a:9,b:1', source)
  unlinkSync(join(directory, 'b.json'))
  await told.has('a:9', source)
})

test('links that are exchanged as those of a ConfigMap are seen', async () => {
  for (const version of ['1', '2']) {
    mkdirSync(join(directory, version))
    write(`${version}/a.yaml`, `[{targets: ["a:${version}"]}]`)
  }
  symlinkSync('1', join(directory, '..data'))
  symlinkSync('..data/a.yaml', join(directory, 'a.yaml'))
  start(['a.yaml'])
  await told.has('a:1', source)
  symlinkSync('2', join(directory, '..new'))
  renameSync(join(directory, '..new'), join(directory, '..data'))
  await told.has('a:2', source)
})

test('a directory that comes later, and is exchanged, is found by looking', async () => {
  start(['sub/*.json'], quick)
  await isAtFault(source, /no such directory/)
  mkdirSync(join(directory, 'sub'))
  write('sub/a.json', '[{"targets":["a:1"]}]')
  await told.has('a:1', source)
  await until('it is well', 20_000, () => source.state.connected)
  rmSync(join(directory, 'sub'), { recursive: true })
  await isAtFault(source, /no such directory/)
  assert.equal(told.addresses, 'a:1', 'out of reach is not gone')
  mkdirSync(join(directory, 'sub'))
  write('sub/a.json', '[{"targets":["a:2"]}]')
  await told.has('a:2', source)
})

test('what cannot be used keeps the last targets, and is told with its place', async () => {
  write('a.json', '[{"targets":["a:1"]}]')
  write('b.json', '[{"targets":["b:1"]}]')
  start(['*.json'])
  await told.has('a:1,b:1', source)
  const check = async (text: string, reason: RegExp) => {
    write('a.json', text)
    await isAtFault(source, reason)
    assert.match(source.state.reason, /a\.json/)
    assert.match(source.state.hint, /correct .*a\.json; until then svc keeps its last 1 targets/)
    assert.equal(source.state.connected, false)
    assert.equal(told.addresses, 'a:1,b:1')
  }
  await check('[{"targets":["a:1"', /not JSON/)
  await check('', /the file is empty/)
  await check('{"targets":["a:1"]}', /not a list/)
  await check('["a:1"]', /group 1 is not an object with "targets"/)
  await check('[{"targets":["a:1"],"label":{}}]', /group 1 has the unknown key "label"/)
  await check('[{"targets":"a:1"}]', /"targets" of group 1 is not a list/)
  await check('[{"targets":["a:1",7]}]', /target 2 of group 1 is not a string/)
  await check('[{"targets":["a:1"],"labels":{"a":7}}]', /label "a" of group 1 is not a string/)
  await check('[{"targets":["a:1"],"labels":[]}]', /"labels" of group 1 is not an object/)
  await check(`[${'{"targets":["a:1"]},'.repeat(10_000)}{"targets":`, /the list is truncated/)
  await check(`[${'{"targets":["a:1"]},'.repeat(10_000)} 7]`, /an element of the list is not an object/)
  write('a.json', '[{"targets":["a:7"]}]')
  await told.has('a:7,b:1', source)
  await until('it is well', 20_000, () => source.state.connected)
})

test('faults of YAML have their line, in large files too', async () => {
  const groups = Array.from({ length: 2000 }, (_, i) => `- targets:\n    - h${i}:1\n`)
  write('a.yml', `# many\n${groups.join('')}`)
  start(['a.yml'])
  await until('all are told', 20_000, () => told.targets.length === 2000)
  write('a.yml', `# many\n${groups.join('')}- targets: [\n`)
  await isAtFault(source, /not YAML: .* at line 400[23]/)
  assert.equal(told.targets.length, 2000)
  write('a.yml', `x: &x\n${groups.join('')}`)
  await isAtFault(source, /not a list|not YAML/)
  write('a.yml', `- &x {targets: ['a:1']}\n${groups.join('')}- *x\n- {<<: *x, labels: {a: b}}\n`)
  await until('anchors are followed', 20_000, () => told.targets.length === 2003)
  assert.equal(told.targets.at(-1)?.a, 'b')
})

test('keys without a value are none, and a socket may be named', async () => {
  write('a.yml', '- targets: [unix:/run/x.sock]\n  labels:\n- targets:\n')
  start(['a.yml'])
  await told.has('unix:/run/x.sock', source)
})

test('pipes, huge files and bombs are refused', async () => {
  execFileSync('mkfifo', [join(directory, 'pipe.json')])
  start(['*.json', '*.yml'])
  await isAtFault(source, /pipe\.json: not a regular file/)
  unlinkSync(join(directory, 'pipe.json'))
  write('a.json', ' '.repeat(16 * 1024 * 1024 + 1))
  await isAtFault(source, /a\.json: it is larger than 16777216 bytes/)
  unlinkSync(join(directory, 'a.json'))
  const layers = Array.from({ length: 20 }, (_, i) => `- &a${i + 1} [${`*a${i}, `.repeat(9)}]\n`)
  write('bomb.yml', `- &a0 [x]\n${layers.join('')}`)
  await isAtFault(source, /bomb\.yml: not YAML: .*alias/)
  unlinkSync(join(directory, 'bomb.yml'))
  await until('it is well', 20_000, () => source.state.connected)
})

test('of more targets than are good the first are told', async () => {
  const group = (first: number) =>
    `{"targets":[${Array.from({ length: 60_000 }, (_, i) => `"h${first + i}:1"`).join()}]}`
  write('a.json', `[${group(0)},${group(60_000)}]`)
  start(['a.json'])
  await isAtFault(source, /more than 100000 targets; 20000 are left out/)
  assert.equal(source.state.targets, 100_000)
  assert.equal(told.targets.length, 100_000)
})

test('where there are no files there is told that there are no targets', async () => {
  start(['*.json'])
  await told.has('', source)
  assert.equal(source.state.connected, true)
  assert.equal(told.times, 1)
})
