import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { type Answer, type Asked, dbusServer, useSystemBus } from '../../../../test/helpers/dbus-server.ts'
import type { DBusValue } from '../../../foundation/lib/dbus-value.ts'
import { systemd } from './systemd.ts'

const path = (name: string) => `/org/freedesktop/systemd1/unit/${name.replace(/\W/g, '_')}`
const unit = (name: string, state: string, load = 'loaded'): DBusValue => [
  ...[name, `Unit ${name}`, load, state, 'running', '', path(name)],
  ...[0, '', '/'],
]

const units = [
  unit('web.service', 'active'),
  unit('once.service', 'failed'),
  unit('gone.service', 'inactive', 'not-found'),
  unit('nightly.timer', 'active'),
  unit('web.socket', 'active'),
  unit('srv.mount', 'active'),
  unit('default.target', 'reloading'),
]
/** Object (its unit, or '') and property → type and value. */
const properties: Record<string, readonly [signature: string, value: DBusValue]> = {
  ' Manager.Version': ['s', '252.39-1~deb12u2'],
  ' Manager.Virtualization': ['s', 'kvm'],
  ' Manager.SystemState': ['s', 'running'],
  'web.service Service.Type': ['s', 'notify'],
  'web.service Service.NRestarts': ['u', 3],
  'web.service Service.TasksCurrent': ['t', 12n],
  'web.service Service.TasksMax': ['t', 2n ** 64n - 1n],
  'web.service Unit.ActiveEnterTimestamp': ['t', 1_700_000_000_250_000n],
  'once.service Service.Type': ['s', 'oneshot'],
  'once.service Service.TasksMax': ['t', 4915n],
  'nightly.timer Timer.LastTriggerUSec': ['t', 1_700_000_100_000_000n],
  'web.socket Socket.NAccepted': ['u', 7],
  'web.socket Socket.NConnections': ['u', 2],
  'web.socket Socket.NRefused': ['u', 1],
  'srv.mount Mount.Type': ['s', 'ext4'],
}

function answer(
  changed: typeof properties = {},
  listed: Answer = { signature: 'a(ssssssouso)', body: [units] },
) {
  const names = new Map(units.map(one => [path((one as string[])[0]!), (one as string[])[0]!]))
  return (call: Asked): Answer => {
    if (call.member === 'ListUnits') return listed
    const [owner, name] = call.body as string[]
    const found = { ...properties, ...changed }[
      `${names.get(call.path) ?? ''} ${owner!.replace('org.freedesktop.systemd1.', '')}.${name}`
    ]
    if (found === undefined) return { error: 'org.freedesktop.DBus.Error.UnknownProperty' }
    return { signature: 'v', body: [{ signature: found[0], value: found[1] }] }
  }
}

async function read(t: TestContext, answers: (call: Asked) => Answer, options: Record<string, unknown> = {}) {
  const server = await dbusServer(t, { answer: answers })
  useSystemBus(t, server.path)
  return { server, ...(await readWith(systemd, options, treeOf(t, {}))) }
}

const states = (name: string, type: string, now: string) =>
  ['activating', 'active', 'deactivating', 'failed', 'inactive'].map(
    state =>
      `node_systemd_unit_state{name="${name}",state="${state}",type="${type}"} ${state === now ? 1 : 0}`,
  )

test('units that are loaded are shown with their states, and all are counted', async t => {
  const { lines, outcome } = await read(t, answer())
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_systemd_socket_accepted_connections_total counter',
    'node_systemd_socket_accepted_connections_total{name="web.socket"} 7',
    '# TYPE node_systemd_socket_current_connections gauge',
    'node_systemd_socket_current_connections{name="web.socket"} 2',
    '# TYPE node_systemd_socket_refused_connections_total gauge',
    'node_systemd_socket_refused_connections_total{name="web.socket"} 1',
    '# TYPE node_systemd_system_running gauge',
    'node_systemd_system_running 1',
    '# TYPE node_systemd_timer_last_trigger_seconds gauge',
    'node_systemd_timer_last_trigger_seconds{name="nightly.timer"} 1.7000001e+09',
    '# TYPE node_systemd_unit_state gauge',
    ...states('default.target', '', ''),
    ...states('nightly.timer', '', 'active'),
    ...states('once.service', 'oneshot', 'failed'),
    ...states('web.service', 'notify', 'active'),
    ...states('web.socket', '', 'active'),
    '# TYPE node_systemd_units gauge',
    'node_systemd_units{state="activating"} 0',
    'node_systemd_units{state="active"} 4',
    'node_systemd_units{state="deactivating"} 0',
    'node_systemd_units{state="failed"} 1',
    'node_systemd_units{state="inactive"} 1',
    'node_systemd_units{state="reloading"} 1',
    '# TYPE node_systemd_version gauge',
    'node_systemd_version{version="252.39-1~deb12u2"} 252.39',
    '# TYPE node_systemd_virtualization_info gauge',
    'node_systemd_virtualization_info{virtualization_type="kvm"} 1',
  ])
})

test('patterns are for whole names, and say what is asked for', async t => {
  const { server, lines } = await read(t, answer(), {
    unit_include: '(?i)WEB.*|srv\\.mount',
    unit_exclude: 'web',
  })
  assert.deepEqual(
    [...new Set(lines.map(line => /unit_state.*name="([^"]*)"/.exec(line)?.[1]))],
    [undefined, 'srv.mount', 'web.service', 'web.socket'],
  )
  assert.ok(lines.includes('node_systemd_unit_state{name="srv.mount",state="active",type="ext4"} 1'))
  assert.ok(!server.asked.some(call => call.path === path('once.service')))
})

test('restarts, tasks and start times are shown where they are asked for and known', async t => {
  const { lines } = await read(t, answer(), {
    unit_include: '.+\\.service',
    enable_task_metrics: true,
    enable_restarts_metrics: true,
    enable_start_time_metrics: true,
  })
  assert.deepEqual(
    lines.filter(line => /restart|tasks|start_time/.test(line)),
    [
      '# TYPE node_systemd_service_restart_total counter',
      'node_systemd_service_restart_total{name="web.service"} 3',
      '# TYPE node_systemd_unit_start_time_seconds gauge',
      'node_systemd_unit_start_time_seconds{name="once.service"} 0',
      'node_systemd_unit_start_time_seconds{name="web.service"} 1.70000000025e+09',
      '# TYPE node_systemd_unit_tasks_current gauge',
      'node_systemd_unit_tasks_current{name="web.service"} 12',
      '# TYPE node_systemd_unit_tasks_max gauge',
      'node_systemd_unit_tasks_max{name="once.service"} 4915',
    ],
  )
})

test('what systemd does not say has the words of the exporter that is replaced', async t => {
  const check = async (changed: typeof properties, want: readonly string[], outcome = 'success') => {
    const found = await read(t, answer(changed), { unit_include: 'web.service' })
    assert.equal(found.outcome, outcome, found.reason)
    for (const line of want) assert.ok(found.lines.includes(line), `${line}\n${found.lines.join('\n')}`)
  }
  await check({ ' Manager.Version': ['s', '42'] }, ['node_systemd_version{version=""} 0'])
  await check({ ' Manager.Version': ['s', 'v209-rc'] }, ['node_systemd_version{version="v209-rc"} 209'])
  await check({ ' Manager.Virtualization': ['s', ''] }, [
    'node_systemd_virtualization_info{virtualization_type="none"} 1',
  ])
  await check({ ' Manager.Virtualization': ['u', 1] }, [
    'node_systemd_virtualization_info{virtualization_type="unknown"} 1',
  ])
  await check({ ' Manager.SystemState': ['s', 'degraded'] }, ['node_systemd_system_running 0'])
  await check({ 'web.service Service.Type': ['u', 1] }, states('web.service', '', 'active'))
  await check({ ' Manager.SystemState': ['u', 1] }, states('web.service', 'notify', 'active'), 'failed')
})

test('a daemon that fails costs what it did not say', async t => {
  const check = async (listed: Answer, want: RegExp) => {
    const { lines, outcome, reason } = await read(t, answer({}, listed))
    assert.equal(outcome, 'failed')
    assert.match(reason, want)
    assert.ok(lines.includes('node_systemd_version{version="252.39-1~deb12u2"} 252.39'))
    assert.ok(!lines.some(line => line.includes('unit_state')))
  }
  await check({ error: 'org.freedesktop.DBus.Error.AccessDenied', text: 'no' }, /^no \(.*AccessDenied\)$/)
  await check({ signature: 'as', body: [['web.service']] }, /of type "as" where "a\(ssssssouso\)"/)
  await check(Buffer.from('x'.repeat(200)), /no byte order/)
  const many = Array<DBusValue>(20_001).fill(unit('a.service', 'active'))
  await check({ signature: 'a(ssssssouso)', body: [many] }, /20001 units of systemd: the limit is 20000/)
})

test('without a bus, root asks systemd itself; nothing stays open', async t => {
  const root = treeOf(t, {})
  mkdirSync(join(root, 'rootfs/run/systemd'), { recursive: true })
  useSystemBus(t, join(root, 'no-bus'))
  const lost = await readWith(systemd, {}, root)
  assert.equal(lost.outcome, 'failed')
  assert.match(lost.reason, /^cannot connect to D-Bus: connect ENOENT .*no-bus$/)
  const server = await dbusServer(t, { answer: answer(), path: join(root, 'rootfs/run/systemd/private') })
  for (const options of process.geteuid!() === 0 ? [{}, { private: true }] : [{ private: true }]) {
    const { lines, outcome } = await readWith(systemd, options, root)
    assert.equal(outcome, 'success')
    assert.ok(lines.includes('node_systemd_system_running 1'))
  }
  assert.ok(!server.asked.some(({ member }) => member === 'Hello'))
})

test('the bus is looked for at its place on the host', async t => {
  const root = treeOf(t, {})
  mkdirSync(join(root, 'rootfs/run/dbus'), { recursive: true })
  useSystemBus(t)
  await dbusServer(t, { answer: answer(), path: join(root, 'rootfs/run/dbus/system_bus_socket') })
  assert.equal((await readWith(systemd, {}, root)).outcome, 'success')
})
