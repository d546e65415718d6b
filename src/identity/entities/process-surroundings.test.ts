import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { anyProcess } from '../../../test/helpers/any-process.ts'
import { containerOf } from '../../../test/helpers/containers.ts'
import { endsOf, noteEnds } from '../../../test/helpers/ended-resources.ts'
import type { Container, Pod } from '../../foundation/model/entity.ts'
import type { ProcessNews } from '../../foundation/model/process-news.ts'
import { ContainerResources } from './container-resources.ts'
import { Entities } from './entities.ts'
import { ProcessGroups } from './process-groups.ts'
import { ProcessTable } from './process-table.ts'

const procDir = mkdtempSync(join(tmpdir(), 'svc-proc-'))
after(() => rmSync(procDir, { recursive: true }))
writeFileSync(join(procDir, 'stat'), 'btime 1700000000\n')

const clock = { ms: 0 }
const id = 'c0'.repeat(32)
const uid = '1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f9'
const place = { id, runtime: 'docker', podUid: '' }

interface Program {
  readonly start?: number
  readonly comm?: string
  readonly exe?: string
  readonly cgroup?: string
  /** Of include/linux/sched.h; 4: it is ending. */
  readonly flags?: number
  readonly args?: readonly string[]
  readonly environ?: readonly string[]
}

function run(pid: number, program: Program = {}): void {
  const directory = join(procDir, String(pid))
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory)
  const { start = 1_000, comm = 'nginx', exe = '/usr/sbin/nginx', cgroup = `/docker/${id}` } = program
  const { flags = 0 } = program
  const { args = ['nginx', '-g', 'daemon off;'], environ = [] } = program
  const before = ['S', 77, 0, 0, 0, 0, flags, ...Array(12).fill(0)].join(' ')
  writeFileSync(join(directory, 'stat'), `${pid} (${comm}) ${before} ${start} 0 0\n`)
  writeFileSync(join(directory, 'cmdline'), args.map(arg => `${arg}\0`).join(''))
  writeFileSync(join(directory, 'environ'), environ.map(each => `${each}\0`).join(''))
  writeFileSync(join(directory, 'cgroup'), `0::${cgroup}\n`)
  if (exe !== '') symlinkSync(exe, join(directory, 'exe'))
}

const exit = (pid: number) => rmSync(join(procDir, String(pid)), { recursive: true })

function container(parts: Partial<Container> = {}): Container {
  return containerOf({ id, name: 'shop', image: 'example/shop:2', ...parts })
}

const pod: Pod = {
  uid,
  name: 'cart-7d9f-x',
  namespace: 'eu',
  node: 'n',
  startUs: 0,
  addresses: [],
  labels: new Map([['tier', 'web']]),
  annotations: new Map([
    ['resource.opentelemetry.io/team', 'a'],
    ['resource.opentelemetry.io/process.pid', '1'],
  ]),
  owners: [{ kind: 'Deployment', name: 'cart', uid: 'd' }],
  containers: [],
}

function started() {
  const allowedKeys = ['team']
  const entities = new Entities({ now: () => clock.ms, allowedKeys })
  const processes = new ProcessTable({
    procDir,
    hostName: 'host-1',
    hostId: 'machine',
    bootId: 'boot-1',
    version: '1',
    surroundings: at => entities.surroundings(at),
    allowedKeys,
    now: () => clock.ms,
  })
  noteEnds(processes)
  return { entities, processes }
}

const nameOf = (processes: ProcessTable, pid: number) =>
  processes.resource(pid, 'x').attributes.get('service.name')

/** What the kernel tells of a process in the container. */
const news = (kind: 'exec' | 'exit', pid: number, parts: Partial<ProcessNews> = {}): ProcessNews => ({
  kind,
  pid,
  start: 1_000,
  parent: 77,
  user: 0,
  path: kind === 'exec' ? '/usr/bin/curl' : '',
  comm: 'curl',
  cgroupNames: [id, 'docker'],
  ...parts,
})

test('a service is named by its environment, then its surroundings, then its program', () => {
  const { entities, processes } = started()
  run(10, { cgroup: '/system.slice/nginx.service' })
  assert.equal(nameOf(processes, 10), 'nginx')
  run(11)
  assert.equal(nameOf(processes, 11), 'nginx')
  entities.container(container())
  run(12)
  assert.equal(nameOf(processes, 12), 'shop')
  run(13, { environ: ['OTEL_RESOURCE_ATTRIBUTES=service.name=pay,service.namespace=us'] })
  assert.equal(nameOf(processes, 13), 'pay')
  run(14, { environ: ['OTEL_SERVICE_NAME=till'] })
  assert.equal(nameOf(processes, 14), 'till')
  run(15, { exe: '/usr/bin/java', args: ['java', '-Dotel.service.name=given', '-jar', 'x.jar'] })
  assert.equal(nameOf(processes, 15), 'given')
  run(16, { cgroup: `/kubepods/burstable/pod${uid}/${'d'.repeat(64)}` })
  entities.pod(pod)
  const inPod = processes.resource(16, 'x').attributes
  assert.deepEqual(
    ['service.name', 'service.namespace', 'team', 'process.pid', 'k8s.pod.name'].map(key => inPod.get(key)),
    ['cart', 'eu', 'a', 16, 'cart-7d9f-x'],
  )
})

test('what is found out later arrives within a second, and what it replaces has ended', async () => {
  const { entities, processes } = started()
  run(20)
  const first = processes.resource(20, 'x', 80)
  assert.equal(first.attributes.get('container.id'), id)
  assert.equal(first.attributes.get('host.id'), 'machine')
  entities.container(container())
  assert.equal(processes.resource(20, 'x'), first)
  clock.ms += 1_000
  const second = processes.resource(20, 'x')
  assert.equal(second.attributes.get('container.name'), 'shop')
  assert.equal(second.attributes.get('service.instance.id'), first.attributes.get('service.instance.id'))
  assert.deepEqual(await endsOf(processes), [first])
  assert.deepEqual(await processes.services(), [{ name: 'shop', namespace: '', instances: 1, ports: [80] }])
  entities.container(container({ name: 'renamed' }))
  clock.ms += 1_000
  assert.equal(processes.resource(20, 'x').attributes.get('service.name'), 'renamed')
  // Nothing that is told has changed.
  const last = processes.resource(20, 'x')
  entities.container(container({ name: 'renamed', state: 'paused' }))
  clock.ms += 1_000
  assert.equal(processes.resource(20, 'x'), last)
  assert.deepEqual(await endsOf(processes), [second])
  assert.equal((await processes.explain(20))?.containerName, 'renamed')
})

test('a process that is moved to its container shortly after it began is found there', async () => {
  const { processes } = started()
  run(21, { cgroup: '/system.slice/docker.service' })
  const first = processes.resource(21, 'x')
  assert.equal(first.attributes.get('container.id'), undefined)
  writeFileSync(join(procDir, '21', 'cgroup'), `0::/docker/${id}\n`)
  clock.ms += 1_000
  assert.equal(processes.resource(21, 'x').attributes.get('container.id'), id)
  assert.deepEqual(await endsOf(processes), [first])
})

test('a selector that names a cluster means a process as soon as its pod is known', () => {
  const { entities, processes } = started()
  run(22, { cgroup: `/kubepods/pod${uid}/${id}` })
  const wanted = { ...anyProcess, namespace: 'eu', podLabels: new Map([['tier', 'w*']]) }
  processes.select({ instrument: [wanted], exclude: [] })
  assert.equal(processes.hidden(22, 'x'), 'not_selected')
  entities.pod(pod)
  clock.ms += 1_000
  assert.equal(processes.hidden(22, 'x'), '')
  entities.pod({ ...pod, labels: new Map([['tier', 'back']]) })
  clock.ms += 1_000
  assert.equal(processes.hidden(22, 'x'), 'not_selected')
})

test('a program that is executed is another one at once, also under the same name', async () => {
  const { processes } = started()
  run(30)
  const first = processes.resource(30, 'x')
  run(30, { exe: '/opt/nginx' })
  assert.equal(processes.resource(30, 'x'), first)
  processes.noticed(news('exec', 30, { path: '/opt/nginx' }))
  const second = processes.resource(30, 'x')
  assert.notEqual(second, first)
  assert.deepEqual(await endsOf(processes), [first])
  // To a receiver this is the same one.
  run(30, { exe: '/opt/nginx', args: ['nginx', '-c', '/etc/other.conf'] })
  processes.noticed(news('exec', 30, { path: '/opt/nginx' }))
  assert.equal(processes.resource(30, 'x'), second)
  assert.deepEqual(await endsOf(processes), [])
  // Nobody asked for this one: nothing is read.
  processes.noticed(news('exec', 31))
  assert.equal(processes.known(31), undefined)
})

test('a process whose end was told is not looked for, keeps its resource for seconds, and is then reported', async () => {
  const { processes } = started()
  run(32)
  const gone = processes.resource(32, 'x', 80)
  // Of an earlier process of this number.
  processes.noticed(news('exit', 32, { start: 500 }))
  assert.equal((await processes.services()).length, 1)
  processes.noticed(news('exit', 32))
  assert.equal(processes.resource(32, 'x'), gone)
  assert.equal(processes.known(32), gone)
  // Nobody has waited for it yet.
  clock.ms += 1_000
  assert.equal(processes.resource(32, 'x'), gone)
  exit(32)
  clock.ms += 1_000
  assert.equal(processes.resource(32, 'x'), gone)
  assert.deepEqual(await processes.services(), [])
  assert.deepEqual(await endsOf(processes), [])
  clock.ms += 3_000
  assert.deepEqual(await endsOf(processes), [gone])
})

test('who has the number of a process that ended, and executed nothing, is found within a second', async () => {
  const { processes } = started()
  run(35)
  const gone = processes.resource(35, 'x')
  processes.noticed(news('exit', 35))
  run(35, { start: 2_000, exe: '/usr/bin/redis-server' })
  assert.equal(processes.resource(35, 'x'), gone)
  clock.ms += 1_000
  assert.equal(nameOf(processes, 35), 'redis-server')
  assert.deepEqual(await endsOf(processes), [gone])
})

test('what is counted of a process and told a while after its end is still its own', async () => {
  const check = async (pid: number, isTold: boolean) => {
    const { processes } = started()
    run(pid, { environ: ['OTEL_SERVICE_NAME=shopper'] })
    const shopper = processes.resource(pid, 'nginx')
    const ended = news('exit', pid, { path: '/usr/sbin/nginx', comm: 'nginx' })
    if (isTold) processes.noticed(ended)
    exit(pid)
    clock.ms += 14_000
    if (!isTold) assert.deepEqual(await endsOf(processes), [shopper])
    assert.equal(processes.resource(pid, 'nginx'), shopper)
    clock.ms += 6_000
    // It is let go of again.
    assert.deepEqual(await endsOf(processes), [shopper])
    assert.equal(processes.size, 0)
    assert.equal(processes.resource(pid, 'nginx'), shopper)
    assert.deepEqual(await processes.services(), [])
    // Another that had its number, and ended before anybody looked.
    clock.ms += 6_000
    assert.deepEqual(await endsOf(processes), [shopper])
    processes.noticed({ ...ended, start: 9_000 })
    assert.equal(nameOf(processes, pid), 'nginx')
    // Whom nothing was told of.
    clock.ms += 61_000
    await endsOf(processes)
    assert.equal(nameOf(processes, pid), 'x')
  }
  await check(38, true)
  await check(39, false)
})

test('what a process executed last is told of it, also where that was not read in time', async () => {
  const { processes } = started()
  run(53, { args: ['sh'], exe: '/bin/sh', comm: 'sh', cgroup: '/' })
  assert.equal(nameOf(processes, 53), 'sh')
  exit(53)
  assert.equal((await endsOf(processes)).length, 1)
  processes.noticed(news('exec', 53))
  processes.noticed(news('exit', 53))
  assert.equal(processes.resource(53, 'x').attributes.get('process.executable.name'), 'curl')
})

test('what is told of who had a number before is not told of who has it now', () => {
  const { processes } = started()
  run(36, { start: 2_000 })
  const now = processes.resource(36, 'x')
  const before = news('exit', 36)
  processes.noticed(before)
  assert.equal(processes.known(36, before.start), undefined)
  assert.equal(processes.known(36, 2_000), now)
  // The kernel's nanoseconds may fall on the other side of a tick.
  assert.equal(processes.known(36, 2_001), now)
  assert.equal(processes.known(37, 2_000), undefined)
})

test('a process that executes as the end of the one before it under its number is its own', async () => {
  const { processes } = started()
  run(33)
  const first = processes.resource(33, 'x')
  run(33, { start: 3_000, exe: '/usr/bin/curl' })
  processes.noticed(news('exec', 33, { start: 3_000 }))
  assert.deepEqual(await endsOf(processes), [first])
  processes.noticed(news('exit', 33))
  assert.equal(processes.resource(33, 'x').attributes.get('process.executable.name'), 'curl')
})

test('a program that begins under a number whose end was just told is not the one that ended', async () => {
  const { processes } = started()
  run(34)
  const first = processes.resource(34, 'x')
  processes.noticed(news('exit', 34))
  run(34, { start: 3_000, exe: '/usr/bin/curl' })
  processes.noticed(news('exec', 34, { start: 3_000 }))
  assert.equal(processes.resource(34, 'x').attributes.get('process.executable.name'), 'curl')
  assert.deepEqual(await endsOf(processes), [first])
})

test('a process that ended before anybody looked has the container and program that the kernel told', () => {
  const { entities, processes } = started()
  entities.container(container())
  processes.noticed(news('exec', 40))
  processes.noticed(news('exit', 40))
  const got = processes.resource(40, 'c').attributes.toObject()
  assert.equal(got['service.name'], 'shop')
  assert.equal(got['container.name'], 'shop')
  assert.equal(got['process.executable.path'], '/usr/bin/curl')
  assert.equal(got['process.parent_pid'], 77)
  assert.equal(got['process.creation.time'], '2023-11-14T22:13:30.000Z')
  // The same process, be it read or told.
  run(40, { exe: '/usr/bin/curl' })
  const read = started().processes.resource(40, 'c').attributes
  assert.equal(got['service.instance.id'], read.get('service.instance.id'))
  exit(40)
})

test('a process that is ending, which /proc shows in no control group, stays in its container', () => {
  const { entities, processes } = started()
  entities.container(container())
  const ending = { flags: 4, cgroup: '/' }
  const idOf = (pid: number) => processes.resource(pid, 'x').attributes.get('container.id')
  // It was known.
  run(63)
  assert.equal(idOf(63), id)
  run(63, ending)
  clock.ms += 1_000
  assert.equal(idOf(63), id)
  // It is first seen now, and what it executed was told.
  run(64, ending)
  processes.noticed(news('exec', 64))
  assert.equal(idOf(64), id)
  // That belongs to who had the number before.
  run(65, { ...ending, start: 2_000 })
  processes.noticed(news('exec', 65))
  assert.equal(idOf(65), undefined)
  // It has let go of its program already.
  run(68, { ...ending, exe: '' })
  processes.noticed(news('exec', 68))
  assert.equal(idOf(68), id)
  const { attributes } = processes.resource(68, 'x')
  assert.equal(attributes.get('process.executable.path'), '/usr/bin/curl')
  // Only its end was told, after it was seen.
  run(66, ending)
  assert.equal(idOf(66), undefined)
  processes.noticed(news('exit', 66))
  assert.equal(idOf(66), id)
  // One that runs, and is in none.
  run(67, { cgroup: '/' })
  processes.noticed(news('exec', 67))
  assert.equal(idOf(67), undefined)
})

test('what the kernel told of late is asked for where a process is not there', () => {
  const { processes } = started()
  const waiting: ProcessNews[] = []
  processes.catchUp = () => {
    for (const told of waiting.splice(0)) processes.noticed(told)
  }
  clock.ms += 1_000
  waiting.push(news('exit', 41, { path: '/bin/true', cgroupNames: [] }))
  assert.equal(nameOf(processes, 41), 'true')
  assert.equal(nameOf(processes, 50_000), 'x')
  // Began and ended since, in the same millisecond.
  waiting.push(news('exit', 43, { path: '/bin/false', cgroupNames: [] }))
  assert.equal(nameOf(processes, 43), 'false')
})

test('a process that is not there is not taken for who had its number before, whose news are here already', () => {
  const { processes } = started()
  processes.noticed(news('exit', 42, { path: '/bin/before' }))
  clock.ms += 1_000
  processes.catchUp = () =>
    processes.noticed(news('exit', 42, { start: 9_000, path: '/bin/now', cgroupNames: [] }))
  const got = processes.resource(42, 'x').attributes
  assert.equal(got.get('service.name'), 'now')
  assert.equal(got.get('container.id'), undefined)
})

test('a container is the service that its first process is, without what is the process’s own', () => {
  const { entities, processes } = started()
  const host = { attributes: processes.resource(1, 'init').attributes }
  const resources = new ContainerResources({ entities, processes, host: () => host, now: () => clock.ms })
  assert.equal(resources.of({ id: '', runtime: '', podUid: '' }), host)
  assert.equal(resources.of(place).attributes.get('service.name'), 'unknown')
  run(60, { environ: ['OTEL_RESOURCE_ATTRIBUTES=service.name=pay,team=a'] })
  // What a container logs first waits for no second look.
  entities.container(container({ name: 'clever_hopper' }))
  assert.equal(resources.of(place).attributes.get('service.name'), 'shop')
  entities.container(container({ name: 'clever_hopper', pid: 60 }))
  clock.ms += 1_000
  const known = resources.of(place)
  assert.deepEqual(known.attributes.toObject(), {
    'service.name': 'pay',
    'host.name': 'host-1',
    'host.id': 'machine',
    'telemetry.sdk.name': 'svc',
    'telemetry.sdk.version': '1',
    'container.id': id,
    'container.runtime.name': 'docker',
    'container.name': 'clever_hopper',
    'container.image.name': 'example/shop',
    'container.image.tags': ['2'],
    team: 'a',
  })
  clock.ms += 1_000
  assert.equal(resources.of(place), known)
  // It ends, and somebody gives it a name.
  exit(60)
  entities.container(container({ name: 'later', state: 'exited' }))
  clock.ms += 1_000
  const ended = resources.of(place).attributes
  assert.deepEqual([ended.get('service.name'), ended.get('container.name')], ['pay', 'later'])
})

test('processes of two containers are two groups, with what the container is', () => {
  const { entities, processes } = started()
  const other = 'd0'.repeat(32)
  for (const pid of [70, 71]) run(pid, { start: pid })
  run(72, { cgroup: `/docker/${other}` })
  entities.container(container({ name: 'clever_hopper' }))
  const groups = new ProcessGroups(processes, { resource: processes.resource(1, 'init') })
  const group = groups.of(70, 'x')
  assert.equal(groups.of(71, 'x'), group)
  assert.notEqual(groups.of(72, 'x'), group)
  assert.equal(group.attributes.get('container.name'), 'clever_hopper')
  for (const key of ['process.creation.time', 'process.parent_pid', 'process.real_user.id'])
    assert.equal(group.attributes.get(key), undefined)
  // One that ended before anybody looked counts to the group of its container.
  processes.noticed(news('exit', 73, { path: '/usr/sbin/nginx', comm: 'nginx' }))
  assert.equal(groups.of(73, 'nginx'), group)
})
