import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { endsOf, noteEnds } from '../../../test/helpers/ended-resources.ts'
import { runsItsProgram } from '../../../test/helpers/program.ts'
import type { Resource } from '../../foundation/model/resource.ts'
import { ProcessTable, type ProcessTableOptions } from './process-table.ts'

const fixed = { hostName: 'host-1', bootId: 'boot-1', version: '1.2.3' }
const procDir = mkdtempSync(join(tmpdir(), 'svc-proc-'))
after(() => rmSync(procDir, { recursive: true }))

interface Program {
  readonly start?: number
  readonly comm?: string
  readonly exe?: string
  readonly cwd?: string
  readonly args?: readonly string[]
  readonly environ?: readonly string[]
  readonly uid?: number
  readonly cgroup?: string
}

/** Puts a process into the made-up /proc, in place of the one that had its number. */
function run(pid: number, program: Program): void {
  const directory = join(procDir, String(pid))
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory)
  const {
    start = 1_000,
    comm = 'x',
    exe,
    cwd,
    args = [],
    environ = [],
    uid = 1000,
    cgroup = '0::/',
  } = program
  const before = ['S', ...Array(18).fill(0)].join(' ')
  writeFileSync(join(directory, 'stat'), `${pid} (${comm}) ${before} ${start} 0 0\n`)
  writeFileSync(join(directory, 'cmdline'), args.map(arg => `${arg}\0`).join(''))
  writeFileSync(join(directory, 'environ'), environ.map(each => `${each}\0`).join(''))
  writeFileSync(join(directory, 'status'), `Name:\tx\nUid:\t${uid}\t0\t0\t0\nGid:\t0\t0\t0\t0\n`)
  writeFileSync(join(directory, 'cgroup'), `${cgroup}\n`)
  if (exe !== undefined) symlinkSync(exe, join(directory, 'exe'))
  if (cwd !== undefined) symlinkSync(cwd, join(directory, 'cwd'))
}

function exit(pid: number): void {
  rmSync(join(procDir, String(pid)), { recursive: true })
}

const clock = { ms: 0 }

mkdirSync(join(procDir, '1', 'root', 'etc'), { recursive: true })
writeFileSync(
  join(procDir, '1', 'root', 'etc', 'passwd'),
  'root:x:0:0::/:/bin/sh\nshop:x:1000:1000::/:/bin/sh\n',
)
writeFileSync(join(procDir, 'stat'), 'cpu 1 2 3\nbtime 1700000000\nprocesses 4\n')

function table(options: Partial<ProcessTableOptions> = {}): ProcessTable {
  return noteEnds(
    new ProcessTable({ procDir, ...fixed, allowedKeys: ['team'], now: () => clock.ms, ...options }),
  )
}

function described(resource: Resource): Record<string, unknown> {
  return resource.attributes.toObject()
}

const nginx: Program = { comm: 'nginx', exe: '/usr/sbin/nginx', args: ['nginx: worker process'] }

test('a resource tells who the process is, and of its command line only the first word', () => {
  run(10, {
    comm: 'MainThread',
    exe: '/opt/node/bin/node',
    cwd: '/srv/shop',
    args: ['node', 'server.js', '--password=secret'],
    environ: ['HOME=/root', 'API_KEY=secret'],
  })
  const got = described(table().resource(10, 'node'))
  assert.match(
    String(got['service.instance.id']),
    /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  )
  delete got['service.instance.id']
  assert.deepEqual(got, {
    'service.name': 'shop',
    'process.pid': 10,
    'process.creation.time': '2023-11-14T22:13:30.000Z',
    'process.owner': 'shop',
    'process.real_user.id': 1000,
    'process.executable.name': 'node',
    'process.executable.path': '/opt/node/bin/node',
    'process.command': 'node',
    'process.runtime.name': 'nodejs',
    'host.name': 'host-1',
    'telemetry.sdk.name': 'svc',
    'telemetry.sdk.version': '1.2.3',
    'telemetry.sdk.language': 'nodejs',
  })
})

test('a program whose language is not known has no language', () => {
  run(11, nginx)
  const got = described(table().resource(11, 'nginx'))
  assert.equal(got['service.name'], 'nginx')
  assert.equal(got['process.command'], 'nginx:')
  assert.ok(!('telemetry.sdk.language' in got) && !('process.runtime.name' in got))
})

test('what the process was told of OpenTelemetry wins over what its command line says', () => {
  const check = (environ: string[], want: Record<string, unknown>) => {
    run(12, { ...nginx, environ })
    const got = described(table().resource(12, 'nginx'))
    for (const [key, value] of Object.entries(want)) assert.equal(got[key], value, `${environ}: ${key}`)
  }
  check(['OTEL_SERVICE_NAME=pay'], { 'service.name': 'pay' })
  check(['OTEL_RESOURCE_ATTRIBUTES=service.name=pay,service.version=2,team=a%20b'], {
    'service.name': 'pay',
    'service.version': '2',
    team: 'a b',
  })
  check(['OTEL_RESOURCE_ATTRIBUTES=service.name=a', 'OTEL_SERVICE_NAME=b'], { 'service.name': 'b' })
  check(['OTEL_SERVICE_NAME=b', 'OTEL_RESOURCE_ATTRIBUTES=service.name=a'], { 'service.name': 'b' })
  check(['OTEL_SERVICE_NAME=b', 'OTEL_SERVICE_NAME=a'], { 'service.name': 'b' })
  check(['OTEL_SERVICE_NAME='], { 'service.name': 'nginx' })
  check(['OTEL_RESOURCE_ATTRIBUTES=process.pid=1,telemetry.sdk.name=x,deployment.environment.name=prod'], {
    'process.pid': 12,
    'telemetry.sdk.name': 'svc',
    'deployment.environment.name': 'prod',
  })
  check(['OTEL_RESOURCE_ATTRIBUTES=service.name=a,broken'], { 'service.name': 'nginx' })
  check(['OTEL_RESOURCE_ATTRIBUTES=service.name=%zz'], { 'service.name': 'nginx' })
  check(['MY_OTEL_SERVICE_NAME=no'], { 'service.name': 'nginx' })
})

test('a process keeps its one resource, also when it gives itself another name', () => {
  run(13, nginx)
  const processes = table()
  const first = processes.resource(13, 'nginx')
  assert.equal(processes.resource(13, 'nginx'), first)
  run(13, { ...nginx, comm: 'other' })
  clock.ms += 1_000
  assert.equal(processes.resource(13, 'nginx'), first)
  clock.ms += 1_000
  assert.equal(processes.resource(13, 'nginx'), first)
})

test('a number that was used again gets a resource of its own within a second', async () => {
  run(14, nginx)
  const processes = table()
  const first = processes.resource(14, 'nginx')
  run(14, { start: 2_000, comm: 'redis', exe: '/usr/bin/redis-server' })
  clock.ms += 999
  assert.equal(processes.resource(14, 'redis'), first)
  clock.ms += 1
  const second = processes.resource(14, 'redis')
  assert.equal(second.attributes.get('service.name'), 'redis-server')
  assert.notEqual(second.attributes.get('service.instance.id'), first.attributes.get('service.instance.id'))
  assert.deepEqual(await endsOf(processes), [first])
})

test('a process that executes another program gets another resource', () => {
  run(15, { comm: 'sh', exe: '/bin/sh', args: ['sh', '/start.sh'] })
  const processes = table()
  assert.equal(processes.resource(15, 'sh').attributes.get('service.name'), 'sh')
  run(15, { comm: 'node', exe: '/usr/bin/node', args: ['node', '/srv/api.js'] })
  clock.ms += 1_000
  assert.equal(processes.resource(15, 'node').attributes.get('service.name'), 'api')
})

test('the instance id outlives the agent but not the process', () => {
  run(16, nginx)
  const id = () => table().resource(16, 'nginx').attributes.get('service.instance.id')
  const first = id()
  assert.equal(id(), first)
  run(16, { ...nginx, start: 1_001 })
  assert.notEqual(id(), first)
})

test('a process that ended before anybody looked is named by its short name', () => {
  const got = described(table().resource(17, 'curl'))
  assert.equal(got['service.name'], 'curl')
  assert.equal(got['process.executable.name'], 'curl')
  assert.equal(got['process.pid'], 17)
})

test('a process that ended keeps its resource for what comes late, and is reported once', async () => {
  run(18, nginx)
  run(19, nginx)
  const processes = table()
  const [gone, stays] = [processes.resource(18, 'nginx'), processes.resource(19, 'nginx')]
  assert.deepEqual(await endsOf(processes), [])
  exit(18)
  clock.ms += 1_000
  assert.equal(processes.resource(18, 'nginx'), gone)
  assert.deepEqual(await endsOf(processes), [gone])
  assert.deepEqual(await endsOf(processes), [])
  assert.equal(processes.resource(19, 'nginx'), stays)
  assert.equal(processes.size, 1)
})

test('one that was gone before anybody looked keeps its one resource, too', async () => {
  const processes = table()
  const gone = processes.resource(4711, 'short')
  await endsOf(processes)
  assert.equal(processes.known(4711), undefined)
  assert.equal(processes.resource(4711, 'short'), gone)
  clock.ms += 10_000
  await endsOf(processes)
  assert.equal(processes.known(4711), undefined)
  assert.notEqual(processes.resource(4711, 'other'), gone)
})

test('any number of processes takes bounded room, and those let go are reported', async () => {
  const processes = table({ maxProcesses: 8 })
  for (let pid = 100_000; pid < 100_050; pid++) processes.resource(pid, 'x')
  assert.equal(processes.size, 8)
  assert.equal((await endsOf(processes)).length, 50)
})

test('places are shared by owner: whoever has most gives up those that ended, then those that do not call', async () => {
  const processes = table({ maxProcesses: 16 })
  const own = { cgroup: '0::/system.slice/shop.service' }
  const other = { uid: 65_534, cgroup: '0::/user.slice/user-65534.slice/session-1.scope' }
  for (const pid of [500, 501]) run(pid, { ...nginx, ...own })
  const shops = [500, 501].map(pid => processes.resource(pid, 'nginx'))
  for (let pid = 600; pid < 700; pid++) run(pid, { ...nginx, ...other })
  const [caller, quiet] = [processes.resource(600, 'nginx'), processes.resource(601, 'nginx')]
  processes.hidden(600, 'nginx')
  for (let pid = 602; pid < 700; pid++) {
    processes.resource(pid, 'nginx')
    // All others end.
    processes.noticed({
      ...{ kind: 'exit', pid, start: 1_000, parent: 1, user: 65_534, path: '', comm: 'nginx' },
      cgroupNames: [],
    })
  }
  assert.equal(processes.size, 16)
  assert.equal((await endsOf(processes)).length, 86)
  for (let pid = 700; pid < 715; pid++) {
    run(pid, { ...nginx, ...other })
    processes.resource(pid, 'nginx')
  }
  const gone = await endsOf(processes)
  assert.ok(gone.includes(quiet) && !gone.includes(caller))
  for (const [i, pid] of [500, 501].entries()) assert.equal(processes.known(pid), shops[i])
  assert.deepEqual(processes.losses, { refused: 101, taken: 0 })
  // A third owner takes from the one that has most.
  run(800, { ...nginx, cgroup: '0::/system.slice/late.service' })
  processes.resource(800, 'nginx')
  assert.deepEqual([processes.size, processes.losses], [16, { refused: 101, taken: 1 }])
  // Who comes back is who it was, for whoever still has its resource.
  assert.equal(processes.resource(601, 'nginx'), quiet)
})

test('others have their turns while all processes are looked at', async () => {
  const processes = table()
  for (let pid = 1_000_000; pid < 1_004_000; pid++) processes.resource(pid, 'x')
  let turns = 0
  const looked = processes.look().then(() => true)
  while (!(await Promise.race([looked, setImmediate(false)]))) turns++
  assert.ok(turns > 2, `${turns} turns`)
  assert.equal(processes.size, 0)
})

test('services are told by name, with the processes that run and the ports that they answer on', async () => {
  const shop = { ...nginx, environ: ['OTEL_RESOURCE_ATTRIBUTES=service.name=shop,service.namespace=eu'] }
  for (const pid of [30, 31, 32]) run(pid, shop)
  run(33, { ...nginx, environ: ['OTEL_SERVICE_NAME=shop'] })
  run(34, { comm: 'curl', exe: '/usr/bin/curl' })
  const processes = table()
  assert.deepEqual(await processes.services(), [])
  for (const pid of [30, 31, 32, 33, 34]) processes.resource(pid, 'x')
  for (const port of [8443, 8080, 8443, 0]) processes.resource(30, 'x', port)
  processes.resource(31, 'x', 8080)
  processes.resource(32, 'x', 9)
  processes.resource(33, 'x', 80)
  processes.resource(35, 'gone', 81)
  const want = [
    { name: 'curl', namespace: '', instances: 1, ports: [] },
    { name: 'shop', namespace: '', instances: 1, ports: [80] },
    { name: 'shop', namespace: 'eu', instances: 3, ports: [9, 8080, 8443] },
  ]
  assert.deepEqual(await processes.services(), want)
  exit(32)
  exit(33)
  clock.ms += 999
  assert.deepEqual(await processes.services(), want)
  clock.ms += 1
  assert.deepEqual(await processes.services(), [
    want[0],
    { name: 'shop', namespace: 'eu', instances: 2, ports: [8080, 8443] },
  ])
  // What it found to have ended is reported all the same.
  assert.equal((await endsOf(processes)).length, 3)
  // Another program under a number has its own ports.
  run(31, { comm: 'curl', exe: '/usr/bin/curl', start: 2_000 })
  clock.ms += 1_000
  processes.resource(31, 'x')
  assert.deepEqual(await processes.services(), [
    { name: 'curl', namespace: '', instances: 2, ports: [] },
    { name: 'shop', namespace: 'eu', instances: 1, ports: [8080, 8443] },
  ])
})

test('any number of services and ports makes a list of bounded length', async () => {
  const processes = table()
  processes.withoutProc()
  for (let pid = 1; pid <= 1_100; pid++) processes.resource(pid, `service ${pid}`)
  for (let port = 1; port <= 100; port++) {
    processes.resource(1, 'service 1', port)
    processes.resource(2, 'service 2', 7)
  }
  const services = await processes.services()
  assert.equal(services.length, 1_000)
  const names = services.map(({ name }) => name)
  assert.deepEqual(names, names.toSorted())
  assert.deepEqual(
    services[0]!.ports,
    Array.from({ length: 64 }, (_, i) => i + 1),
  )
  assert.deepEqual(services.find(({ name }) => name === 'service 2')?.ports, [7])
})

test('a name with spaces and parentheses does not mislead', async () => {
  run(20, { comm: 'a) R 1 2 (b', exe: '/usr/bin/odd' })
  const processes = table()
  const first = processes.resource(20, '')
  clock.ms += 1_000
  assert.equal(processes.resource(20, ''), first)
  assert.deepEqual(await endsOf(processes), [])
})

test('an executable that was replaced by an update keeps its name', () => {
  run(21, { comm: 'nginx', exe: '/usr/sbin/nginx (deleted)' })
  assert.equal(table().resource(21, 'nginx').attributes.get('service.name'), 'nginx')
})

test('damaged files of a process make no error', () => {
  for (const stat of ['', '(', ')(', '22 (x)', '22 (x) S 1 2', `22 (x) ${'x '.repeat(30)}`]) {
    run(22, nginx)
    writeFileSync(join(procDir, '22', 'stat'), stat)
    assert.equal(table().resource(22, 'fallback').attributes.get('service.name'), 'fallback', stat)
  }
})

test('real processes are found in the real /proc, and their end is seen', async () => {
  const processes = noteEnds(new ProcessTable(fixed))
  const own = processes.resource(process.pid, 'node')
  assert.equal(own.attributes.get('process.executable.path'), process.execPath)
  const child = spawn('sleep', ['60'], { env: { OTEL_SERVICE_NAME: 'sleeper', PATH: process.env.PATH } })
  await runsItsProgram(child.pid!)
  const sleeper = processes.resource(child.pid!, 'sleep')
  const ended = once(child, 'exit')
  child.kill()
  await ended
  assert.equal(sleeper.attributes.get('service.name'), 'sleeper')
  assert.deepEqual(await endsOf(processes), [sleeper])
  assert.equal(processes.resource(process.pid, 'node'), own)
})

test('where /proc has other numbers, the short name is all that is told', async () => {
  run(23, nginx)
  const processes = table()
  processes.withoutProc()
  const first = processes.resource(23, 'curl')
  assert.equal(first.attributes.get('service.name'), 'curl')
  assert.equal(first.attributes.get('process.executable.path'), undefined)
  clock.ms += 1_000
  assert.equal(processes.resource(23, 'curl'), first)
  assert.deepEqual(await endsOf(processes), [])
  assert.equal(processes.resource(23, 'curl'), first)
})
