// owns: process
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemd } from '../../src/signals/metrics/collectors/systemd.ts'
import { readWith } from '../helpers/collector.ts'
import { until } from '../helpers/program.ts'
import { systemdFixtures, UserSystemd, withoutSystemd } from '../helpers/user-systemd.ts'

const skip = withoutSystemd
let manager: UserSystemd

before(async () => {
  if (skip) return
  manager = await UserSystemd.start(join(systemdFixtures, 'units'))
  process.env.DBUS_SYSTEM_BUS_ADDRESS = manager.address
})

after(async () => {
  delete process.env.DBUS_SYSTEM_BUS_ADDRESS
  await manager?.stop()
})

const read = (options: Record<string, unknown> = {}) => readWith(systemd, options, manager.directory)

test('units of a real systemd are shown as it has them', { skip }, async () => {
  const state = (name: string, now: string, type: string) =>
    `node_systemd_unit_state{name="${name}",state="${now}",type="${type}"} 1`
  const wanted = [
    state('simple.service', 'active', 'simple'),
    state('notified.service', 'activating', 'notify'),
    state('done.service', 'active', 'oneshot'),
    state('broken.service', 'failed', 'simple'),
    state('door.socket', 'active', ''),
    state('rare.timer', 'active', ''),
  ]
  let lines: readonly string[] = []
  // Units start one after another, and one has to fail three times.
  await until(
    () => `all units are there: ${lines.join('\n')}`,
    20_000,
    async () => {
      lines = (await read({ enable_restarts_metrics: true, enable_start_time_metrics: true })).lines
      return wanted.every(line => lines.includes(line))
    },
  )
  assert.ok(lines.includes('node_systemd_service_restart_total{name="broken.service"} 3'))
  assert.ok(lines.includes('node_systemd_unit_start_time_seconds{name="broken.service"} 0'))
  assert.ok(lines.includes('node_systemd_system_running 0'), 'it is still starting')
  assert.ok(!lines.some(line => line.includes('absent.service')))
  const at = (pattern: RegExp) => Number(lines.map(line => pattern.exec(line)?.[1]).find(Boolean))
  for (const pattern of [
    /last_trigger_seconds{name="rare.timer"} (\S+)/,
    /start_time.*"simple.service"} (\S+)/,
  ])
    assert.ok(Math.abs(at(pattern) - Date.now() / 1000) < 120, String(pattern))
})

test('numbers are those that another client is told', { skip }, async () => {
  const { lines } = await read()
  const version = JSON.parse(manager.manager('get-property', 'Version').slice(2)) as string
  assert.ok(lines.some(line => line.startsWith(`node_systemd_version{version="${version}"} `)))
  const all = Number(manager.manager('call', 'ListUnits').split(' ')[1])
  const counted = lines
    .filter(line => line.startsWith('node_systemd_units{'))
    .reduce((sum, line) => sum + Number(line.split(' ')[1]), 0)
  assert.equal(counted, all)
})

test('connections to a socket unit are counted', { skip }, async () => {
  const door = (lines: readonly string[], what: string) =>
    lines.find(line => line.startsWith(`node_systemd_socket_${what}{name="door.socket"}`))?.split(' ')[1]
  const socket = connect(join(manager.directory, 'door'))
  await until(
    'systemd has accepted',
    20_000,
    async () => door((await read()).lines, 'accepted_connections_total') === '1',
  )
  assert.equal(door((await read()).lines, 'current_connections'), '1')
  socket.destroy()
  await until(
    'the service has ended',
    20_000,
    async () => door((await read()).lines, 'current_connections') === '0',
  )
})
