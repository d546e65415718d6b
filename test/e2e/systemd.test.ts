import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemd } from '../../src/collectors/systemd.ts'
import { readWith } from '../helpers/collector.ts'
import { withoutRoot } from '../helpers/host-needs.ts'
import { until } from '../helpers/program.ts'

const fixtures = join(import.meta.dirname, '../fixtures/systemd')
const missing = ['/usr/lib/systemd/systemd', '/usr/bin/dbus-daemon', '/usr/bin/busctl'].filter(
  path => !existsSync(path),
)
const skip = missing.length > 0 ? `a real systemd needs ${missing.join(', ')}` : withoutRoot

let directory = ''
let manager: ChildProcess | undefined
let talk = ''

before(async () => {
  if (skip) return
  directory = mkdtempSync(join(tmpdir(), 'svc-systemd-'))
  manager = spawn('bash', [join(fixtures, 'manager.sh'), directory, join(fixtures, 'units')])
  manager.stderr!.on('data', text => {
    talk += text
  })
  let out = ''
  manager.stdout!.on('data', text => {
    out += text
  })
  await until(
    () => `systemd is ready: ${talk}`,
    20_000,
    () => out.includes('ready') || manager!.exitCode !== null,
  )
  assert.ok(out.includes('ready'), talk)
  process.env.DBUS_SYSTEM_BUS_ADDRESS = `unix:path=${directory}/bus`
})

after(async () => {
  if (manager?.exitCode === null) {
    manager.stdin!.end()
    await new Promise(resolve => manager!.once('close', resolve))
  }
  delete process.env.DBUS_SYSTEM_BUS_ADDRESS
  if (directory !== '') rmSync(directory, { recursive: true, force: true })
})

const read = (options: Record<string, unknown> = {}) => readWith(systemd, options, directory)

/** Asks systemd by a program of its own, which has its own D-Bus. */
function busctl(...args: string[]): string {
  const { stdout, stderr } = spawnSync('busctl', [`--address=unix:path=${directory}/bus`, ...args])
  assert.equal(String(stderr), '')
  return String(stdout).trim()
}

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
  const manager = [
    'org.freedesktop.systemd1',
    '/org/freedesktop/systemd1',
    'org.freedesktop.systemd1.Manager',
  ]
  const { lines } = await read()
  const version = JSON.parse(busctl('get-property', ...manager, 'Version').slice(2)) as string
  assert.ok(lines.some(line => line.startsWith(`node_systemd_version{version="${version}"} `)))
  const all = Number(busctl('call', ...manager, 'ListUnits').split(' ')[1])
  const counted = lines
    .filter(line => line.startsWith('node_systemd_units{'))
    .reduce((sum, line) => sum + Number(line.split(' ')[1]), 0)
  assert.equal(counted, all)
})

test('connections to a socket unit are counted', { skip }, async () => {
  const door = (lines: readonly string[], what: string) =>
    lines.find(line => line.startsWith(`node_systemd_socket_${what}{name="door.socket"}`))?.split(' ')[1]
  const socket = connect(join(directory, 'door'))
  await until(
    'systemd has accepted',
    10_000,
    async () => door((await read()).lines, 'accepted_connections_total') === '1',
  )
  assert.equal(door((await read()).lines, 'current_connections'), '1')
  socket.destroy()
  await until(
    'the service has ended',
    10_000,
    async () => door((await read()).lines, 'current_connections') === '0',
  )
})
