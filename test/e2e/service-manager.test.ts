// owns: process
// What a real systemd makes of the life of the agent, by the lines of the unit that are about it.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { until } from '../helpers/program.ts'
import { systemdFixtures, UserSystemd, withoutSystemd } from '../helpers/user-systemd.ts'

const skip = withoutSystemd
const root = resolve(import.meta.dirname, '../..')
const good = `mode: collector
otlp: { endpoint: "127.0.0.1:4317", insecure: true }
pipeline: { export: { queue: { directory: /run/own/queue } } }
self_telemetry: { listen: "127.0.0.1:19090", admin_socket: /run/own/svc.sock }
`
/** The lines that a manager of a user can follow: those of rights are for the system's. */
const life = /^(Type|ExecStart|ExecReload|Timeout\w+|KillMode|Restart\w*|UMask|LimitCORE)=/
/** The unit says 60: a test does not wait so long. */
const watchdogSeconds = 10

let manager: UserSystemd
let units = ''

before(async () => {
  if (skip) return
  units = mkdtempSync(join(tmpdir(), 'svc-units-'))
  for (const name of ['basic.target', 'bus.conf', 'dbus.service', 'dbus.socket'])
    copyFileSync(join(systemdFixtures, 'units', name), join(units, name))
  writeFileSync(join(units, 'default.target'), '[Unit]\nDescription=Nothing\nWants=dbus.service\n')
  const lines = readFileSync(join(root, 'deploy/systemd/svc.service'), 'utf8').split('\n')
  const kept = lines.filter(line => life.test(line))
  assert.ok(kept.includes('Type=notify') && kept.length >= 9, kept.join('\n'))
  const unit = [
    '[Unit]\nDescription=svc\n[Service]',
    ...kept.map(line => line.replace('/usr/bin/svc', join(root, 'bin/svc'))),
    `WatchdogSec=${watchdogSeconds}`,
    'Environment=SVC_CONFIG_FILE=/run/own/config.yaml',
    'StandardOutput=append:/run/own/log\nStandardError=append:/run/own/log',
  ]
  writeFileSync(join(units, 'svc.service'), `${unit.join('\n')}\n`)
  assert.equal(spawnSync('chmod', ['-R', 'a+rX', units]).status, 0)
  manager = await UserSystemd.start(units)
})

after(async () => {
  await manager?.stop()
  if (units !== '') rmSync(units, { recursive: true, force: true })
})

const unit = (property: string) => manager.service('svc.service', 'Unit', property)
const service = (property: string) => manager.service('svc.service', 'Service', property)
const log = () => readFileSync(join(manager.directory, 'log'), 'utf8')
const configure = (text: string) => writeFileSync(join(manager.directory, 'config.yaml'), text)
const job = (method: string) => manager.manager('call', method, 'ss', 'svc.service', 'replace')
const state = () => `${unit('ActiveState')}, ${service('Result')}, ${service('NRestarts')}\n${log()}`
const active = (what: string, more: () => boolean = () => true) =>
  until(
    () => `${what}: ${state()}`,
    60_000,
    () => unit('ActiveState') === 'active' && more(),
  )
/** To the main process of the unit, whose pid is one of the manager's namespace. */
const signal = (number: number) =>
  manager.manager('call', 'KillUnit', 'ssi', 'svc.service', 'main', `${number}`)

test('systemd learns that it runs, and what of it', { skip }, async () => {
  configure(good)
  job('StartUnit')
  await active('it runs')
  await until(
    () => `its status says what runs: ${service('StatusText')}`,
    20_000,
    () => service('StatusText') === 'runs: discovery, export, queue',
  )
  assert.equal(service('WatchdogUSec'), `${watchdogSeconds}000000`)
})

test('it is left alone for longer than the watchdog waits', { skip }, async () => {
  const pid = service('MainPID')
  await new Promise(resolve => setTimeout(resolve, watchdogSeconds * 1500))
  assert.deepEqual([service('MainPID'), unit('ActiveState')], [pid, 'active'], state())
})

test('a good configuration is taken up by a reload, and a bad one ends the reload alone', {
  skip,
}, async () => {
  const pid = service('MainPID')
  configure(`${good}log_level: debug\n`)
  job('ReloadUnit')
  await until(
    () => `the change is taken up: ${log()}`,
    20_000,
    () => /configuration reloaded: .*log_level/.test(log()),
  )
  configure(`${good}log_levle: debug\n`)
  job('ReloadUnit')
  await until(
    () => `the command says what is wrong: ${log()}`,
    20_000,
    () => /did you mean "?log_level/.test(log()),
  )
  await active('it goes on')
  assert.equal(service('MainPID'), pid)
  configure(good)
})

test('an agent that hangs is started anew', { skip }, async () => {
  const pid = service('MainPID')
  const restarts = Number(service('NRestarts'))
  signal(constants.signals.SIGSTOP)
  await active('another one runs', () => Number(service('NRestarts')) > restarts)
  assert.notEqual(service('MainPID'), pid)
})

test('an agent that is killed is started anew', { skip }, async () => {
  const restarts = Number(service('NRestarts'))
  signal(constants.signals.SIGKILL)
  await active('another one runs', () => Number(service('NRestarts')) > restarts)
})

test('a stop is an orderly end', { skip }, async () => {
  job('StopUnit')
  await until(
    () => `it has ended: ${state()}`,
    60_000,
    () => unit('ActiveState') === 'inactive',
  )
  assert.equal(service('Result'), 'success', state())
  assert.match(log(), /"stopped"/)
})

test('a wrong configuration ends the start, and no further one is tried', { skip }, async () => {
  configure(`${good}log_levle: debug\n`)
  job('StartUnit')
  await until(
    () => `it has failed: ${state()}`,
    60_000,
    () => unit('ActiveState') === 'failed',
  )
  // Longer than RestartSec=.
  await new Promise(resolve => setTimeout(resolve, 7_000))
  assert.deepEqual(
    [unit('ActiveState'), service('ExecMainStatus'), service('NRestarts')],
    ['failed', '2', '0'],
    state(),
  )
})
