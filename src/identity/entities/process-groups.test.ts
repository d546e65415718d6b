import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { after, test } from 'node:test'
import { runsItsProgram } from '../../../test/helpers/program.ts'
import { resource } from '../../foundation/model/resource.ts'
import { ProcessGroups } from './process-groups.ts'
import { ProcessTable } from './process-table.ts'

const children: ChildProcess[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

async function sleeper(env: Readonly<Record<string, string>> = {}): Promise<number> {
  const child = spawn('sleep', ['60'], { env: { ...process.env, ...env }, stdio: 'ignore' })
  children.push(child)
  await runsItsProgram(child.pid!)
  return child.pid!
}

function groups(): ProcessGroups {
  const processes = new ProcessTable({ hostName: 'here', bootId: 'b', version: '1' })
  return new ProcessGroups(processes, { resource: resource({ 'host.name': 'here' }) })
}

test('processes of one program and service are one group, without what tells them apart', async () => {
  const of = groups()
  const [one, two] = [await sleeper(), await sleeper()]
  const other = await sleeper({ OTEL_SERVICE_NAME: 'night' })
  const group = of.of(one, 'sleep')
  assert.equal(of.of(two, 'sleep'), group)
  assert.notEqual(of.of(other, 'sleep'), group)
  const { attributes } = group
  assert.equal(attributes.get('service.name'), 'sleep')
  assert.match(String(attributes.get('process.executable.path')), /sleep$/)
  assert.equal(attributes.get('process.pid'), undefined)
  assert.equal(attributes.get('service.instance.id'), undefined)
  assert.equal(of.of(other, 'sleep').attributes.get('service.name'), 'night')
})

test('who ended before anybody looked counts to the group of its name', async () => {
  const of = groups()
  const pid = await sleeper()
  const group = of.of(pid, 'sleep')
  assert.equal(of.of(2 ** 22 + 1, 'sleep'), group)
  const unknown = of.of(2 ** 22 + 2, 'gone-tool')
  assert.notEqual(unknown, group)
  assert.equal(unknown.attributes.get('service.name'), 'gone-tool')
  assert.equal(of.of(2 ** 22 + 3, 'gone-tool'), unknown)
})

test('threads of the kernel are one group of the host', () => {
  const of = groups()
  assert.equal(of.kernel(), of.kernel())
  assert.equal(of.kernel().attributes.get('service.name'), 'kernel')
  assert.equal(of.kernel().attributes.get('host.name'), 'here')
})

test('processes with any names take bounded memory, and are the same groups after it was given back', () => {
  const named = (i: number) =>
    resource({ 'service.name': `${i}`.padEnd(200, 'x'), 'a.b': `${i}`.padEnd(3_000, 'y') })
  let at = 0
  const table = { resource: () => named(at) } as unknown as ProcessTable
  const of = new ProcessGroups(table, { resource: resource({ 'host.name': 'here' }) })
  let most = 0
  for (at = 0; at < 20_000; at++) {
    of.of(at, 'x')
    most = Math.max(most, of.bytes)
  }
  assert.ok(most > 1e6 && most <= 4 * 2 ** 20, String(most))
  at = 7
  const before = of.of(7, 'x').attributes.toObject()
  const held = of.bytes
  assert.equal(of.shed(), held)
  assert.equal(of.bytes, 0)
  assert.deepEqual(of.of(7, 'x').attributes.toObject(), before)
})
