// owns: host
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { afterEach, test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { testedNative, testOnKernels } from '../../../test/helpers/native.ts'
import { until } from '../../../test/helpers/program.ts'
import type { AttributeValue } from '../../foundation/model/attributes.ts'
import type { ProcessNews } from '../../foundation/model/process-news.ts'
import { loadedPrograms } from '../../kernel/loaded.ts'
import { ProcessEvents } from './process-events.ts'

const skip = withoutBpf
const memory = '/sys/fs/cgroup/memory'
const withoutMemoryGroup: string | false =
  withoutBpf ||
  (existsSync(`${memory}/memory.limit_in_bytes`)
    ? false
    : 'needs the memory controller of cgroups, version 1')

interface Told {
  readonly event: string
  readonly pid: number
  readonly body: string
  readonly severity: number
  readonly timeUs: number
  readonly attributes: Record<string, AttributeValue>
}

let events: ProcessEvents | undefined
const told: Told[] = []
const processes: ProcessNews[] = []

afterEach(() => {
  events?.close()
  told.length = 0
  processes.length = 0
})

/** Others of the host may start many programs in a second. */
function start(maxPerSecond = 1_000_000): ProcessEvents {
  events = new ProcessEvents(testedNative(), {
    maxPerSecond,
    onProcess: event => processes.push(event),
    emit: ({ eventName, body, severity, timeUs, attributes }) =>
      told.push({
        event: eventName,
        pid: Number(attributes.get('process.pid')),
        body,
        severity,
        timeUs,
        attributes: attributes.toObject(),
      }),
  })
  return events
}

/** What was told of a process, in its order. */
function of(pid: number): Told[] {
  events?.drain()
  return told.filter(event => event.pid === pid)
}

/** Runs a shell script, which ends as it likes; returns its number. */
function shell(script: string): number {
  return Number(
    spawnSync('/bin/sh', ['-c', `echo $$; ${script}`])
      .stdout.toString()
      .split('\n')[0],
  )
}

test('a program that starts and ends is told twice, with its times and never with its arguments', {
  skip,
}, () => {
  start()
  const before = Date.now() * 1000
  const pid = shell('exit 3 # secret')
  const [exec, exit, ...more] = of(pid)
  assert.deepEqual(more, [])
  assert.deepEqual(
    [exec?.event, exec?.severity, exec?.body],
    ['svc.process.exec', 9, `process ${pid} runs /bin/sh`],
  )
  const common = {
    'process.pid': pid,
    'process.parent_pid': process.pid,
    'process.real_user.id': process.getuid!(),
    'process.executable.name': 'sh',
    'process.executable.path': '/bin/sh',
  }
  const { 'svc.cgroup.id': cgroup, ...names } = exec!.attributes
  assert.ok(Number(cgroup) > 0)
  assert.deepEqual(names, common)
  const { 'svc.process.lifetime': lifetime, 'svc.cgroup.id': _, ...ended } = exit!.attributes
  assert.deepEqual(ended, { ...common, 'process.exit.code': 3, 'svc.process.exit.reason': 'error' })
  assert.ok(Number(lifetime) > 0 && Number(lifetime) < 60)
  // A second's leeway: the wall clock may be set meanwhile.
  assert.ok(
    exec!.timeUs > before - 1e6 && exit!.timeUs >= exec!.timeUs && exit!.timeUs < Date.now() * 1000 + 1e6,
  )
  assert.ok(!JSON.stringify(told).includes('secret'))
})

testOnKernels('the end tells its reason', { skip }, () => {
  start()
  const check = (script: string, severity: number, want: Record<string, AttributeValue>) => {
    const exit = of(shell(script)).at(-1)
    const attributes: Record<string, AttributeValue> = {}
    for (const [key, value] of Object.entries(exit!.attributes))
      if (key.includes('exit')) attributes[key] = value
    assert.deepEqual([exit!.severity, attributes], [severity, want])
  }
  check('true', 9, { 'process.exit.code': 0, 'svc.process.exit.reason': 'success' })
  check('kill -TERM $$', 13, { 'svc.process.exit.signal': 'SIGTERM', 'svc.process.exit.reason': 'signal' })
  check('kill -KILL $$', 13, { 'svc.process.exit.signal': 'SIGKILL', 'svc.process.exit.reason': 'signal' })
})

testOnKernels('a process of many threads ends once', { skip }, () => {
  const events = start()
  const script = `
import os, threading, time
print(os.getpid(), flush=True)
for i in range(20): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
os._exit(0)`
  const pid = Number(execFileSync('python3', ['-c', script], { encoding: 'utf8' }))
  assert.equal(of(pid).filter(({ event }) => event === 'svc.process.exit').length, 1)
  assert.ok(events.counts().starts >= 1)
})

testOnKernels('what is told has a bound and what is counted has none', { skip }, () => {
  const events = start(3)
  const script = 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; (exit 1); kill -TERM $$'
  const before = events.counts()
  shell(script)
  const after = events.counts()
  const grown = (of: (counts: typeof after) => number) => of(after) - of(before)
  // Others may start programs meanwhile.
  assert.ok(grown(({ execs }) => execs) >= 11)
  assert.ok(grown(({ starts }) => starts) >= 12)
  assert.ok(grown(({ exits }) => exits.get('success') ?? 0) >= 10)
  assert.ok(grown(({ exits }) => exits.get('error') ?? 0) >= 1)
  assert.ok(grown(({ exits }) => exits.get('SIGTERM') ?? 0) >= 1)
  events.drain()
  assert.ok(events.unreported > 0)
  const seconds = new Set(told.map(({ timeUs }) => Math.floor(timeUs / 1e6))).size
  assert.ok(told.length <= 3 * (seconds + 1), `${told.length} in ${seconds} s`)
  const names = events.metrics(Date.now() * 1000).map(({ name }) => name)
  assert.deepEqual(names, [
    'svc.process.starts',
    'svc.process.execs',
    'svc.process.exits',
    'svc.process.oom_kills',
  ])
})

test('a bound that is lowered holds from then on, and what it costs is measured', { skip }, () => {
  const events = start()
  const pid = shell('true')
  assert.equal(of(pid).length, 2)
  assert.ok(events.busyMs > 0)
  const before = events.counts()
  events.limit(0)
  const quiet = shell('true')
  assert.deepEqual([of(quiet).length, events.unreported >= 2], [0, true])
  assert.ok(events.counts().execs > before.execs)
  events.limit(1_000_000)
  assert.equal(of(shell('true')).length, 2)
})

test('a process that the kernel kills for its memory is told as such', {
  skip: withoutMemoryGroup,
}, async () => {
  const events = start()
  const group = `${memory}/svc-test-${process.pid}`
  mkdirSync(group)
  try {
    writeFileSync(`${group}/memory.limit_in_bytes`, String(32 * 2 ** 20))
    const script = `
import os
open('${group}/cgroup.procs', 'w').write(str(os.getpid()))
print(os.getpid(), flush=True)
kept = [b'x' * (1 << 20) for i in range(200)]`
    const { stdout, signal } = spawnSync('python3', ['-c', script])
    assert.equal(signal, 'SIGKILL')
    const pid = Number(stdout.toString())
    const [kill, exit] = of(pid).slice(-2)
    assert.deepEqual([kill?.event, kill?.severity], ['svc.process.oom_kill', 17])
    assert.match(String(kill?.attributes['process.executable.name']), /^python3/)
    assert.deepEqual(exit?.attributes['svc.process.exit.reason'], 'oom_kill')
    assert.ok(events.counts().oomKills >= 1)
  } finally {
    await until('the group is empty', 30_000, () => {
      try {
        rmdirSync(group)
        return true
      } catch {
        // Its process is still on its way out.
        return false
      }
    })
  }
})

test('what waits is told before the end', { skip }, () => {
  const events = start()
  const pid = shell('true')
  events.close()
  assert.equal(of(pid).length, 2)
  events.close()
  assert.deepEqual(loadedPrograms('process'), [])
})

test('who asks for what waits while a record is taken gets each record once', { skip }, () => {
  const seen: string[] = []
  const mine = new ProcessEvents(testedNative(), {
    maxPerSecond: 1_000_000,
    onProcess: () => mine.drain(),
    emit: ({ eventName, attributes }) => {
      mine.drain()
      seen.push(`${eventName} ${attributes.get('process.pid')}`)
    },
  })
  events = mine
  const pid = shell('true')
  mine.drain()
  assert.deepEqual(
    seen.filter(each => each.endsWith(` ${pid}`)),
    [`svc.process.exec ${pid}`, `svc.process.exit ${pid}`],
  )
})

test('what is told of a process has the start that /proc tells, and no group where it is in no container', {
  skip,
}, () => {
  start()
  const stat =
    shell('true') > 0 ? spawnSync('/bin/sh', ['-c', 'echo $$; cat /proc/$$/stat']).stdout.toString() : ''
  const pid = Number(stat.split('\n')[0])
  of(pid)
  const [exec, exit] = processes.filter(event => event.pid === pid)
  const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
  const common = {
    pid,
    start: ticks,
    parent: process.pid,
    user: process.getuid!(),
    path: '/bin/sh',
    comm: 'sh',
  }
  assert.deepEqual(exec, { kind: 'exec', ...common, cgroupNames: [] })
  assert.deepEqual(exit, { kind: 'exit', ...common, cgroupNames: [] })
})

/** Hierarchies that a group can be made in: the memory controller's of version 1, or the unified one. */
const unified = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find(path =>
  existsSync(`${path}/cgroup.subtree_control`),
)
const hierarchy = existsSync(`${memory}/cgroup.procs`) ? memory : unified

test('a process that ended tells the container whose group it was in, also below it', {
  skip: withoutBpf || (hierarchy === undefined && 'needs a hierarchy of control groups'),
}, async () => {
  start()
  const id = 'ab'.repeat(32)
  const top = `${hierarchy}/svc-test-${process.pid}.slice`
  const group = `${top}/cri-containerd-${id}.scope`
  const below = `${group}/system.slice/web.service`
  const all = [below, `${group}/system.slice`, group, top]
  mkdirSync(below, { recursive: true })
  try {
    const names = [`cri-containerd-${id}.scope`, `svc-test-${process.pid}.slice`]
    for (const each of [group, below]) {
      const pid = shell(`echo $$ > ${each}/cgroup.procs; exec /bin/true`)
      of(pid)
      const events = processes.filter(event => event.pid === pid)
      assert.deepEqual(
        events.map(({ kind, cgroupNames }) => [kind, cgroupNames]),
        [
          ['exec', []],
          ['exec', names],
          ['exit', names],
        ],
      )
      assert.equal(events[2]!.path, '/bin/true')
    }
    assert.ok(readFileSync(`${group}/cgroup.procs`, 'utf8').length === 0)
  } finally {
    await until('the groups are empty', 30_000, () => {
      for (const each of all)
        try {
          rmdirSync(each)
        } catch {
          // Gone already, or its process is still on its way out.
        }
      return !existsSync(top)
    })
  }
})
