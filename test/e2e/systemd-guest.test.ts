// owns: load
// systemd as the first process of a machine, with the system's bus and logins, and in it the exporter that is replaced
// beside ours: as root, and as a user who reaches systemd over the bus only.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { exporterProgram, withoutExporter } from '../helpers/exporter-peer.ts'
import { type Exposition, parseExposition, type Sample } from '../helpers/exposition.ts'
import { Guest, withoutGuest } from '../helpers/guest.ts'
import { guestProgram } from '../helpers/guest-bundle.ts'
import { until } from '../helpers/program.ts'

const skip = withoutGuest || withoutExporter

const directory = mkdtempSync(join(tmpdir(), 'svc-bundle-'))
/** Of loopback in the guest. */
const ports = { peer: 9100, asRoot: 9101, asNobody: 9102 }
const flags = [
  '--collector.systemd',
  '--collector.logind',
  ...['task', 'restarts', 'start-time'].map(name => `--collector.systemd.enable-${name}-metrics`),
  // Fewer than are left out else: mounts have types, and their names and those of slices have signs.
  '--collector.systemd.unit-exclude=.+\\.device',
]
const ofUnits = 'collect[]=systemd&collect[]=logind'

let guest: Guest

before(async () => {
  if (skip) return
  guest = await Guest.start({
    init: ['/usr/lib/systemd/systemd'],
    trees: { ...(await guestProgram(directory)), '/opt/exporter': exporterProgram },
    // Nobody can log in at the serial console: its program is not in the machine.
    links: { '/etc/systemd/system/serial-getty@ttyS0.service': '/dev/null' },
  })
  await eventually('systemd has started all', async () =>
    /^(running|degraded)/.test(await guest.run('systemctl is-system-running || true')),
  )
  await guest.run(`set -e
    ${command('peer', '/opt/exporter', ports.peer)}
    ${command('own', '/opt/svc/bin/svc node-exporter', ports.asRoot)}
    ${command('plain --uid=nobody', '/opt/svc/bin/svc node-exporter', ports.asNobody)}
    systemctl start --no-block notified.service
    systemctl start stubborn.service
    systemctl stop --no-block stubborn.service
    systemd-run --unit=caller bash -c 'for i in 4 5 6; do eval "exec $i<>/dev/tcp/127.0.0.1/7"; done; sleep infinity'`)
  for (const port of Object.values(ports))
    await eventually(`the program at ${port} answers`, () =>
      page(port, 'collect[]=time').then(Boolean, () => false),
    )
})
after(async () => {
  await guest?.stop()
  rmSync(directory, { recursive: true })
})

function command(unit: string, program: string, port: number): string {
  const quoted = flags.map(flag => `'${flag}'`).join(' ')
  return `systemd-run --unit=${unit} ${program} --web.listen-address=127.0.0.1:${port} ${quoted}`
}

/** Waits for a state of the guest. Where it does not come, the error has what the guest has logged. */
async function eventually(what: string, test: () => Promise<boolean>): Promise<void> {
  try {
    await until(what, 120_000, test)
  } catch (error) {
    const log = await guest.run('journalctl --no-pager --lines=60')
    throw new Error(`${what}: not in time\n${guest.console}\n${log}`, { cause: error })
  }
}

async function page(port: number, query: string): Promise<Exposition> {
  const reply = await guest.run(`exec 3<>/dev/tcp/127.0.0.1/${port}
    printf 'GET /metrics?${query} HTTP/1.0\\r\\n\\r\\n' >&3
    cat <&3`)
  const end = reply.indexOf('\r\n\r\n')
  assert.match(reply.slice(0, end), /^HTTP\/1.. 200 /)
  return parseExposition(reply.slice(end + 4), 'text')
}

/** Series of units and logins, and which of their collectors succeed. */
function samplesOf({ families }: Exposition): Map<string, Sample> {
  const shown = [...families.values()].filter(({ name }) =>
    /^node_(systemd_|logind_|scrape_collector_success)/.test(name),
  )
  // The programs that are compared have threads that come and go.
  const moving = /^node_systemd_unit_tasks_current{name="(peer|own|plain)\.service"}/
  const samples = shown.flatMap(({ samples }) => samples).filter(({ key }) => !moving.test(key))
  return new Map(samples.map(sample => [sample.key, sample]))
}

/** Without those that the compared version does not know. */
function linesOf(page: Exposition): string[] {
  return [...samplesOf(page).values()]
    .filter(({ name }) => name !== 'node_systemd_virtualization_info')
    .map(({ key, value }) => `${key} ${value}`)
    .sort()
}

/** What both show of units and logins must be the same, unless it changes meanwhile. Returns our page. */
async function agreed(port: number): Promise<Exposition> {
  let theirs = await page(ports.peer, ofUnits)
  for (let tries = 0; ; tries++) {
    const ours = await page(port, ofUnits)
    const later = await page(ports.peer, ofUnits)
    const changes = linesOf(theirs).join() !== linesOf(later).join()
    theirs = later
    if (changes && tries < 10) continue
    assert.deepEqual(linesOf(ours), linesOf(theirs))
    for (const { name, type } of theirs.families.values())
      if (/^node_(systemd|logind)_/.test(name)) assert.equal(ours.families.get(name)?.type, type, name)
    return ours
  }
}

async function succeeding(port: number, query = ''): Promise<Map<string, number>> {
  const { samples } = (await page(port, query)).families.get('node_scrape_collector_success')!
  return new Map(samples.map(({ labels, value }) => [labels.collector!, value]))
}

function has(page: Exposition, wanted: Readonly<Record<string, number>>): void {
  const samples = samplesOf(page)
  for (const [key, value] of Object.entries(wanted))
    assert.equal(samples.get(`node_${key}`)?.value, value, `node_${key}`)
}

test('units and logins are those that the exporter shows, series by series', { skip }, async t => {
  const pages = [await agreed(ports.asRoot), await agreed(ports.asNobody)]
  for (const page of pages) {
    t.diagnostic(`${samplesOf(page).size} series`)
    has(page, {
      'systemd_unit_state{name="simple.service",state="active",type="simple"}': 1,
      'systemd_unit_state{name="done.service",state="active",type="oneshot"}': 1,
      'systemd_unit_state{name="broken.service",state="failed",type="simple"}': 1,
      'systemd_unit_state{name="notified.service",state="activating",type="notify"}': 1,
      'systemd_unit_state{name="stubborn.service",state="deactivating",type="simple"}': 1,
      'systemd_unit_state{name="odd@a-b\\\\x2dc.service",state="active",type="simple"}': 1,
      'systemd_unit_tasks_max{name="simple.service"}': 7,
      'systemd_unit_tasks_current{name="simple.service"}': 1,
      'systemd_service_restart_total{name="broken.service"}': 3,
      'systemd_timer_last_trigger_seconds{name="never.timer"}': 0,
      'systemd_socket_accepted_connections_total{name="door.socket"}': 1,
      'systemd_socket_current_connections{name="door.socket"}': 1,
      'systemd_socket_refused_connections_total{name="door.socket"}': 2,
      'systemd_units{state="failed"}': 1,
      'systemd_system_running{}': 0,
      'logind_sessions{class="user",remote="false",seat="seat0",type="tty"}': 1,
      'logind_sessions{class="greeter",remote="false",seat="",type="wayland"}': 1,
      'logind_sessions{class="background",remote="false",seat="",type="unspecified"}': 1,
      'scrape_collector_success{collector="systemd"}': 1,
      'scrape_collector_success{collector="logind"}': 1,
    })
    for (const name of ['absent.service', 'dev-ttyS0.device'])
      assert.ok(!page.values('node_systemd_unit_state', 'name').includes(name), name)
    assert.ok(!samplesOf(page).has('node_systemd_unit_tasks_max{name="odd@a-b\\\\x2dc.service"}'))
  }
})

test('what systemd and logind do next is shown as well', { skip }, async () => {
  await guest.run(`set -e
    systemctl stop caller.service login@greeter.service
    systemctl kill --signal=KILL stubborn.service`)
  await eventually('what was to end has ended', async () => {
    const shown = samplesOf(await page(ports.asRoot, ofUnits))
    const inactive = 'node_systemd_units{state="deactivating"}'
    const sessions = 'node_logind_sessions{class="greeter",remote="false",seat="",type="wayland"}'
    return shown.get(inactive)?.value === 0 && shown.get(sessions)?.value === 0
  })
  for (const port of [ports.asRoot, ports.asNobody])
    has(await agreed(port), {
      'systemd_unit_state{name="stubborn.service",state="failed",type="simple"}': 1,
      'systemd_units{state="failed"}': 2,
      'systemd_socket_current_connections{name="door.socket"}': 0,
      'logind_sessions{class="user",remote="false",seat="seat0",type="tty"}': 1,
    })
  await guest.run('systemctl reset-failed')
  for (const port of [ports.asRoot, ports.asNobody])
    has(await agreed(port), { 'systemd_units{state="failed"}': 0, 'systemd_system_running{}': 1 })
})

/** Names of the collectors that fail, and did not before. */
async function failures(port: number, before: ReadonlyMap<string, number>, query = ''): Promise<string[]> {
  const now = await succeeding(port, query)
  assert.deepEqual([...now.keys()], [...before.keys()])
  return [...now].filter(([name, value]) => value !== before.get(name)).map(([name]) => name)
}

test('without its bus nothing else fails, and all is well once it is there again', { skip }, async () => {
  const before = await succeeding(ports.asNobody)
  assert.ok(before.size > 40 && before.get('systemd') === 1 && before.get('logind') === 1)
  const units = await succeeding(ports.asRoot, ofUnits)
  // What wants the bus, as logind does, must not start it anew.
  await guest.run(
    'systemctl mask --runtime dbus.socket dbus.service; systemctl stop dbus.socket dbus.service',
  )
  assert.deepEqual(await failures(ports.asNobody, before), ['logind', 'systemd'])
  // Root reaches systemd without it, in both programs.
  assert.deepEqual(await failures(ports.asRoot, units, ofUnits), ['logind'])
  assert.deepEqual(await failures(ports.peer, units, ofUnits), ['logind'])
  await guest.run(
    'systemctl unmask --runtime dbus.socket dbus.service; systemctl start dbus.socket dbus.service',
  )
  await eventually('the bus is back', async () => (await failures(ports.asNobody, before)).length === 0)
  for (const port of [ports.asRoot, ports.asNobody]) await agreed(port)
})

test('a bus that does not answer holds up nothing else', { skip }, async () => {
  const before = await succeeding(ports.asNobody)
  await guest.run('systemctl kill --signal=STOP dbus.service')
  assert.deepEqual(await failures(ports.asNobody, before), ['logind', 'systemd'])
  await guest.run('systemctl kill --signal=CONT dbus.service')
  await eventually('the bus answers', async () => (await failures(ports.asNobody, before)).length === 0)
  for (const port of [ports.asRoot, ports.asNobody]) await agreed(port)
})
