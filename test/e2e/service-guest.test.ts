// owns: load
// The unit and the tree of the package in a machine that systemd has started: what the agent does there as a user with few
// rights, and what it does not, told exactly.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { build } from 'esbuild'
import { collectors } from '../../src/signals/metrics/collectors/index.ts'
import { bundleOptions } from '../../tools/bundle-options.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { type Exposition, parseExposition } from '../helpers/exposition.ts'
import { Guest, withoutGuest } from '../helpers/guest.ts'
import { until } from '../helpers/program.ts'

const skip = withoutGuest
const root = resolve(import.meta.dirname, '../..')
const directory = mkdtempSync(join(tmpdir(), 'svc-service-'))
const fixtures = join(root, 'test/fixtures/service-guest')
const units = join(root, 'deploy/systemd')
/** A receiver that is away. */
const shared = `otlp: { endpoint: "127.0.0.1:4317", insecure: true }
pipeline: { export: { queue: { enabled: true } } }
`
/** Everything that the program does without being asked. Emulated processors take minutes to load its programs. */
const whole = `${shared}agent: { logs: { journald: true } }\n`
const light = `${shared}agent: { logs: { journald: true }, ebpf: false, profiling: false }\n`

/** Emulated processors are slow: what takes a second elsewhere takes minutes. */
const slow = (watchdogSeconds: number) =>
  `[Service]\nTimeoutStartSec=900\nWatchdogSec=${watchdogSeconds}\nTimeoutAbortSec=3\n`

let guest: Guest

before(async () => {
  if (skip) return
  const certificates = makeCertificates()
  guest = await Guest.start({
    kernelOf: 'trixie',
    inTurns: true,
    // The emulator interrupts cmpxchg16b, by which the kernel then hands out the same memory twice: without it (cx16).
    parameters: ['clearcpuid=141'],
    memoryMb: 2560,
    init: ['/usr/lib/systemd/systemd'],
    trees: {
      ...(await programDirectory()),
      '/etc': fixtures,
      '/usr/lib/systemd/system/svc.service': join(units, 'svc.service'),
      '/usr/lib/systemd/system/svc-doctor.service': join(units, 'svc-doctor.service'),
      '/usr/lib/sysusers.d/svc.conf': join(units, 'svc.sysusers.conf'),
      '/usr/lib/sysctl.d/05-svc.conf': join(units, 'svc.sysctl.conf'),
      '/opt/shop.cjs': join(root, 'test/fixtures/service-shop.cjs'),
      '/opt/key.pem': certificates.file('server.key'),
      '/opt/certificate.pem': certificates.file('server.pem'),
    },
    files: {
      '/etc/svc/config.yaml': light,
      '/opt/light.yaml': light,
      '/opt/whole.yaml': whole,
      '/etc/systemd/system/svc.service.d/slow.conf': slow(900),
    },
    limitMs: 1_800_000,
    links: {
      '/usr/bin/svc': '../lib/svc/bin/svc',
      '/usr/bin/node': '../lib/svc/runtime/bin/node',
      '/etc/systemd/system/serial-getty@ttyS0.service': '/dev/null',
    },
  })
  certificates.remove()
  await eventually('systemd has started all', async () =>
    /^(running|degraded)/.test(await guest.run('systemctl is-system-running || true')),
  )
  await guest.run(`chmod a+r /opt/key.pem
    systemd-run --unit=shop --uid=nobody /usr/bin/node /opt/shop.cjs`)
  await restart()
})
after(async () => {
  await guest?.stop()
  rmSync(directory, { recursive: true })
})

/** The tree of the package, of the sources as they are now, by paths in the guest. */
async function programDirectory(): Promise<Record<string, string>> {
  const about = JSON.stringify({ version: '0.0.0', commit: 'test', built: '2026-01-01T00:00:00Z' })
  const define = { 'import.meta.dirname': '__dirname', SVC_BUILD: about }
  const bundled = {
    'svc.cjs': 'src/main.ts',
    'profiling-worker.cjs': 'src/signals/profiles/worker.ts',
    'try-worker.cjs': 'src/program/documents/try-worker.ts',
  }
  for (const [name, entry] of Object.entries(bundled))
    await build({
      entryPoints: [join(root, entry)],
      outfile: join(directory, name),
      define,
      ...bundleOptions,
    })
  const dist = join(root, 'dist')
  const others = readdirSync(dist).filter(name => !/\.(cjs|map)$/.test(name) && !name.startsWith('.'))
  return {
    '/usr/lib/svc/bin/svc': join(root, 'bin/svc'),
    '/usr/lib/svc/runtime/bin/node': process.execPath,
    ...Object.fromEntries(
      Object.keys(bundled).map(name => [`/usr/lib/svc/dist/${name}`, join(directory, name)]),
    ),
    ...Object.fromEntries(others.map(name => [`/usr/lib/svc/dist/${name}`, join(dist, name)])),
  }
}

/** Waits for a state of the guest. Where it does not come, the error has what the guest has logged. */
async function eventually(what: string, test: () => Promise<boolean>, timeoutMs = 300_000): Promise<void> {
  try {
    await until(what, timeoutMs, test)
  } catch (error) {
    const log = await guest.run('journalctl --no-pager --lines=80')
    throw new Error(`${what}: not in time\n${guest.console}\n${log}`, { cause: error })
  }
}

async function restart(): Promise<void> {
  try {
    await guest.run('systemctl restart svc')
  } catch (error) {
    throw new Error(await guest.run('journalctl --no-pager --lines=80'), { cause: error })
  }
}

/** A property of the unit, as systemd has it. */
async function property(name: string): Promise<string> {
  return (await guest.run(`systemctl show --property=${name} --value svc`)).trim()
}

async function journal(since = ''): Promise<string> {
  return guest.run(`journalctl --no-pager --output=cat --unit=svc ${since}`)
}

/** The body of a page of the agent, or of the exporter at another port. */
async function page(path: string, port = 19090): Promise<string> {
  const reply = await guest.run(`exec 3<>/dev/tcp/127.0.0.1/${port}
    printf 'GET ${path} HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
    cat <&3`)
  const end = reply.indexOf('\r\n\r\n')
  assert.match(reply.slice(0, end), /^HTTP\/1.. 200 /)
  return reply.slice(end + 4)
}

interface Doctor {
  readonly host: { readonly user: string }
  readonly groups: readonly {
    readonly checks: readonly { readonly name: string; readonly state: string; readonly detail: string }[]
  }[]
}

/** What svc-doctor.service finds missing or limited, by name. Slow as the machine is, some has no answer in time. */
async function doctor(topic = ''): Promise<string[]> {
  await guest.run(`mkdir -p /run/systemd/system/svc-doctor.service.d
    printf '[Service]\nExecStart=\nExecStart=/usr/bin/svc doctor ${topic} --json\nStandardOutput=truncate:/run/doctor.json\n' \
      >/run/systemd/system/svc-doctor.service.d/json.conf
    systemctl daemon-reload
    systemctl start svc-doctor`)
  const { host, groups } = JSON.parse(await guest.run('cat /run/doctor.json')) as Doctor
  assert.equal(host.user, 'svc')
  const checks = groups.flatMap(group => group.checks)
  return checks.filter(({ state }) => state === 'missing' || state === 'limited').map(({ name }) => name)
}

test('the agent runs as its user with few rights, and its state is shown', { skip }, async () => {
  assert.equal(await property('ActiveState'), 'active')
  assert.equal(await property('StatusText'), 'runs: logs, discovery, host metrics, export, queue')
  const status = await guest.run(`cat /proc/${await property('MainPID')}/status`)
  const wanted = readFileSync(join(units, 'svc.service'), 'utf8')
    .match(/^AmbientCapabilities=(.*)$/m)![1]!
    .split(' ')
  const sets = ['Prm', 'Eff', 'Bnd', 'Amb'].map(
    set => new RegExp(`^Cap${set}:\\s(\\w+)$`, 'm').exec(status)![1]!,
  )
  assert.equal(new Set(sets).size, 1, status)
  const count = [...BigInt(`0x${sets[0]}`).toString(2)].filter(bit => bit === '1').length
  assert.equal(count, wanted.length)
  assert.match(status, /^NoNewPrivs:\s1$/m)
  assert.match(status, /^Seccomp:\s2$/m)
  const uid = (await guest.run('id -u svc')).trim()
  assert.match(status, new RegExp(`^Uid:\\s${uid}\\s${uid}\\s${uid}\\s${uid}$`, 'm'))
})

test('what systemd says of the unit is no warning', { skip }, async () => {
  const said = await guest.run('journalctl --no-pager --output=cat --priority=warning _PID=1')
  assert.ok(!/svc/.test(said), said)
})

/** Commands that the unit forbids even to root, and some that it allows. */
const attempts = {
  refused: [
    'echo >/usr/x',
    'echo >/etc/x',
    'echo >/home/x',
    'echo >/root/x',
    'echo >/sys/fs/cgroup/cgroup.procs',
    'ls -d /usr/lib/modules/x',
    'ls -d /tmp/of-the-host',
    ': </dev/kmsg',
    'mknod /var/lib/attempts/null c 1 3',
    'chmod u+s /var/lib/attempts/file',
    'ulimit -n 1000000',
  ],
  allowed: [
    'echo >/var/lib/attempts/file',
    'echo >/run/attempts/file',
    'echo >/tmp/file',
    'ls /home',
    ': </dev/null',
    ': </sys/kernel/tracing/available_events',
    'read -r line </proc/kallsyms',
  ],
}

test('what the unit forbids is forbidden, to root too', { skip }, async () => {
  const lines = [...attempts.allowed, ...attempts.refused].map(
    line => `(${line}) >/dev/null 2>&1 && echo 'allowed ${line}' || echo 'refused ${line}'`,
  )
  const unit = readFileSync(join(units, 'svc-doctor.service'), 'utf8')
    .replace(/^User=.*$/m, 'StandardOutput=truncate:/run/said')
    .replace(/^(StateDirectory|RuntimeDirectory)=svc$/gm, '$1=attempts')
    .replace(/^ExecStart=.*$/m, 'ExecStart=/bin/bash /opt/attempts.sh')
  const write = (text: string, path: string) =>
    `echo ${Buffer.from(text).toString('base64')} | base64 -d >${path}`
  await guest.run(`mkdir -p /usr/lib/modules/x /home /root; touch /tmp/of-the-host
    ${write(lines.join('\n'), '/opt/attempts.sh')}
    ${write(unit, '/run/systemd/system/attempts.service')}
    systemctl daemon-reload
    systemctl start attempts`)
  const said = (await guest.run('cat /run/said')).trim().split('\n')
  assert.deepEqual(said, [
    ...attempts.allowed.map(line => `allowed ${line}`),
    ...attempts.refused.map(line => `refused ${line}`),
  ])
})

/** Names of the collectors that ended well, or not. */
function succeeding({ families }: Exposition, well = 1): Set<string> {
  const { samples } = families.get('node_scrape_collector_success')!
  return new Set(samples.filter(({ value }) => value === well).map(({ labels }) => labels.collector!))
}

test('the 79 collectors show all that they show to root', { skip }, async t => {
  const flags = collectors.map(({ name }) => `--collector.${name}`).join(' ')
  const unit = readFileSync(join(units, 'svc.service'), 'utf8')
    .replace(/^Type=notify$/m, 'Type=exec')
    .replace(/^(WatchdogSec|RuntimeDirectory|ExecReload)=.*\n/gm, '')
    .replace(
      /^ExecStart=.*$/m,
      `ExecStart=/usr/bin/svc node-exporter --web.listen-address=127.0.0.1:9201 ${flags}`,
    )
  await guest.run(`echo ${Buffer.from(unit).toString('base64')} | base64 -d >/run/systemd/system/own.service
    systemctl daemon-reload
    systemctl start own
    systemd-run --unit=asroot /usr/bin/svc node-exporter --web.listen-address=127.0.0.1:9202 ${flags}`)
  const show = async (port: number): Promise<Exposition | undefined> =>
    page('/metrics', port).then(
      text => parseExposition(text, 'text'),
      () => undefined,
    )
  let wanting: readonly string[] = []
  // Slow as all is here, a collector may find no time in one page.
  await eventually('both show the same', async () => {
    const [own, all] = [await show(9201), await show(9202)]
    if (own === undefined || all === undefined) return false
    assert.equal(succeeding(all).size + succeeding(all, 0).size, collectors.length)
    wanting = [
      ...[...succeeding(all)].filter(name => !succeeding(own).has(name)),
      ...[...all.families.keys()].filter(name => !own.families.has(name)),
    ]
    t.diagnostic(`${succeeding(own).size} and ${succeeding(all).size} collectors; wanting: ${wanting.join()}`)
    return wanting.length === 0 && succeeding(all).size > 30
  })
  await guest.run('systemctl stop own asroot')
})

test('a reload takes up a good file, and ends before the agent with a bad one', { skip }, async () => {
  const pid = await property('MainPID')
  await guest.run('printf "log_level: debug\n" >>/etc/svc/config.yaml; systemctl reload svc')
  await eventually('the change is taken up', async () => /log_level/.test(await journal('--lines=40')))
  await guest.run('printf "log_levle: info\n" >>/etc/svc/config.yaml')
  await assert.rejects(guest.run('systemctl reload svc'))
  assert.match(await journal('--lines=40'), /did you mean.*log_level/)
  await guest.run('cp /opt/light.yaml /etc/svc/config.yaml')
  assert.equal(await property('MainPID'), pid)
  assert.equal(await property('ActiveState'), 'active')
  await page('/healthz')
})

/** Changes the bound of time between two signs of life, which holds from the next start on. */
async function watchEvery(seconds: number): Promise<void> {
  await guest.run(`printf '${slow(seconds)}' >/etc/systemd/system/svc.service.d/slow.conf
    systemctl daemon-reload`)
}

test('what waits for the receiver is there after a restart', { skip }, async () => {
  await eventually('something waits', async () =>
    page('/debug/pipeline/stats').then(
      text => /"queued": ?[1-9]/.test(text),
      () => false,
    ),
  )
  await watchEvery(60)
  await guest.run('systemctl restart svc')
  const said = await journal()
  for (const what of ['"drained"', '"stopped"', 'items recovered from an earlier run'])
    assert.match(said, new RegExp(what))
  assert.equal(await property('Result'), 'success')
})

test('an agent that hangs is started anew', { skip }, async () => {
  assert.equal(await property('WatchdogUSec'), '1min')
  const [pid, restarts] = [await property('MainPID'), Number(await property('NRestarts'))]
  await guest.run(`kill -STOP ${pid}`)
  await eventually('it is started anew', async () => Number(await property('NRestarts')) > restarts)
  await eventually('it runs', async () => (await property('ActiveState')) === 'active')
  assert.notEqual(await property('MainPID'), pid)
  const said = await guest.run('journalctl --no-pager --output=cat _PID=1')
  assert.match(said, /svc\.service: Watchdog timeout \(limit 1min\)!/)
  await watchEvery(900)
})

test('a wrong configuration ends the start at once, and is told', { skip }, async () => {
  await guest.run('systemctl stop svc; printf "log_levle: info\n" >>/etc/svc/config.yaml')
  await assert.rejects(guest.run('systemctl start svc'))
  await guest.run('sleep 8')
  assert.deepEqual(
    [await property('ActiveState'), await property('ExecMainStatus'), await property('NRestarts')],
    ['failed', '2', '0'],
  )
  assert.match(await journal('--lines=20'), /did you mean.*log_level/)
  await guest.run('rm /etc/svc/config.yaml; svc validate')
})

test('with everything on, all of it runs', { skip }, async () => {
  await guest.run('cp /opt/whole.yaml /etc/svc/config.yaml; systemctl reset-failed svc')
  await restart()
  const status = 'runs: traces, profiles, logs, discovery, host metrics, export, queue'
  await eventually('its status says so', async () => (await property('StatusText')) === status)
})

test('doctor finds nothing that the unit costs', { skip }, async () => {
  // There is none.
  const pid = await property('MainPID')
  // Where the emulated processor is slow, the answers of the agent are late.
  let found: string[] = []
  await eventually('nothing is found', async () => {
    found = (await doctor()).filter(name => name !== 'receiver')
    return found.length === 0
  }).catch(error => assert.fail(`${found}: ${error}`))
  assert.equal(await property('MainPID'), pid, await guest.run('journalctl --no-pager --lines=80'))
})

/** What a command of svc says that wants an answer of the agent in seconds, of which it may take some here. */
async function answered(command: string): Promise<string> {
  let said = ''
  await eventually(`"${command}" is answered`, async () => {
    said = await guest.run(command).catch(String)
    return !/no agent answers|no answer within/.test(said)
  })
  return said
}

test('requests of other users are traced, those within TLS too', { skip }, async () => {
  let spans = ''
  await eventually('both are traced', async () => {
    spans = await answered('timeout 300 svc tap traces -n 40 --json')
    return ['/plain', '/secret'].every(path => spans.includes(`"${path}"`))
  }).catch(error => assert.fail(`${spans.slice(0, 4000)}\n${error}`))
})

test('profiles name functions of other users’ programs and of the kernel', { skip }, async t => {
  const table = await answered('svc profile -d 5s')
  t.diagnostic(table)
  assert.match(table, /\bserve\b/)
})

test('where the kernel asks for more than CAP_PERFMON, doctor says so', { skip }, async () => {
  await guest.run('echo 3 >/proc/sys/kernel/perf_event_paranoid')
  assert.deepEqual(await doctor('profiles'), ['perf events'])
})
