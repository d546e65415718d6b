import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { hostTree } from '../../../test/helpers/collector.ts'
import { ExporterProcess } from '../../../test/helpers/exporter-process.ts'
import { parseExposition } from '../../../test/helpers/exposition.ts'
import { call } from '../../../test/helpers/http.ts'
import { freePort, listening, until } from '../../../test/helpers/program.ts'
import { svcProgram } from '../../../test/helpers/program-under-test.ts'
import { ExporterFlags } from './node-exporter/flags.ts'

const fixture = [`--path.procfs=${hostTree}/proc`, `--path.sysfs=${hostTree}/sys`]
const loadavg = ['--collector.disable-defaults', '--collector.loadavg']

/** Runs the command to its end. */
function run(...args: string[]): { status: number | null; out: string; talk: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [svcProgram, 'node-exporter', ...args], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
    timeout: 20_000,
  })
  return { status, out: stdout, talk: stderr }
}

async function start(t: TestContext, ...args: string[]): Promise<ExporterProcess> {
  const exporter = await ExporterProcess.own([...fixture, ...loadavg, ...args])
  t.after(() => exporter.stop())
  return exporter
}

test('every flag of the replaced exporter is taken, with the same kind of value, and no other', () => {
  const { all } = new ExporterFlags()
  const path = resolve(import.meta.dirname, '../../../test/fixtures/exporter-flags.txt')
  const wrong: string[] = []
  const others = new Set(all.keys())
  for (const line of readFileSync(path, 'utf8').trim().split('\n')) {
    if (line.startsWith('#')) continue
    const [name = '', takes = ''] = line.split(' ')
    others.delete(name)
    const own = all.get(name)?.takes ?? 'nothing: it is not known'
    // Some lists here are one pattern there.
    if (own !== takes && !(own === 'values' && takes === 'value')) wrong.push(`${name} takes ${own}`)
  }
  assert.deepEqual(wrong, [])
  assert.deepEqual([...others], [])
})

test('textfile reads the directories that flags name, and misses those that are not there', async t => {
  const scrapeError = async (...args: string[]) => {
    const exporter = await ExporterProcess.own([
      '--collector.disable-defaults',
      '--collector.textfile',
      ...args,
    ])
    t.after(() => exporter.stop())
    return parseExposition(await exporter.page(), 'text').sum('node_textfile_scrape_error')
  }
  assert.equal(await scrapeError(), 0)
  assert.equal(await scrapeError('--collector.textfile.directory=/nowhere'), 1)
})

test('help and version are printed, and faults told, without anything being started', () => {
  const version = run('--version')
  assert.deepEqual([version.status, version.talk], [0, ''])
  assert.match(
    version.out,
    /^node_exporter, version \d+\.\d+\.\d+ \(branch: svc, revision: \w+\)\n {2}build user: .*\n {2}build date: {7}\d{8}-\d\d:\d\d:\d\d\n/,
  )
  const help = run('--help')
  assert.equal(help.status, 0)
  assert.match(help.out, /^usage: svc node-exporter \[<flags>\]\n\nFlags:\n/)
  const fault = run('--nope')
  assert.deepEqual(
    [fault.status, fault.out, fault.talk],
    [1, '', "svc node-exporter: error: unknown long flag '--nope', try --help\n"],
  )
})

test('what it cannot serve ends it with the reason', async t => {
  const other = createServer()
  t.after(() => other.close())
  await new Promise<void>(done => other.listen(0, '127.0.0.1', done))
  const { port } = other.address() as { port: number }
  const taken = run(`--web.listen-address=127.0.0.1:${port}`)
  assert.equal(taken.status, 1)
  assert.match(taken.talk, /level=ERROR msg="cannot listen on 127\.0\.0\.1:\d+ \(--web\.listen-address\): /)
  const check = (args: readonly string[], why: RegExp) => {
    const { status, talk } = run(...args)
    assert.equal(status, 1)
    assert.match(talk, why)
  }
  check(['--web.listen-address=vsock://:9100'], /--web\.listen-address is \\"vsock:\/\/:9100\\"/)
  check(['--web.config.file=/nowhere'], /cannot use \/nowhere: there is no such file/)
  check(['--web.systemd-socket'], /systemd passed no socket/)
})

test('it serves at all of its addresses and ends in good order by a signal', async t => {
  const port = await freePort()
  const exporter = await start(t, `--web.listen-address=127.0.0.1:${port}`, '--web.telemetry-path=/m')
  const load = readFileSync(join(hostTree, 'proc/loadavg'), 'utf8').split(' ')[0]
  for (const at of [exporter.port, port]) {
    const page = parseExposition((await call(at, '/m')).body.toString(), 'text')
    assert.equal(page.sum('node_load1'), Number(load))
    assert.equal(page.sum('node_scrape_collector_success'), 1)
  }
  assert.equal((await call(port, '/metrics')).status, 404)
  for (const signal of ['SIGHUP', 'SIGUSR1'] as const) process.kill(exporter.pid, signal)
  const page = parseExposition(await exporter.page('/m'), 'text')
  assert.equal(page.sum('promhttp_metric_handler_requests_total', { code: '200' }), 2)
  assert.equal(page.sum('node_exporter_build_info'), 1)
  assert.match(exporter.said, /^time=\S+Z level=INFO msg="Starting node_exporter" version=/)
  assert.match(exporter.said, / msg="Enabled collectors" collectors=loadavg\n/)
  assert.doesNotMatch(exporter.said, /Debugger/)
  const began = performance.now()
  await exporter.stop()
  assert.ok(performance.now() - began < 10_000)
  assert.match(exporter.said, /level=INFO msg=Stopping signal=SIGTERM\n$/)
})

test('without metrics of its own, and with its log as JSON', async t => {
  const exporter = await start(t, '--web.disable-exporter-metrics', '--log.format=json', '--log.level=debug')
  const page = parseExposition(await exporter.page(), 'text')
  assert.deepEqual(
    [...page.families.keys()].filter(name => !/^node_(load|scrape)/.test(name)),
    ['node_exporter_build_info'],
  )
  for (const line of exporter.said.trim().split('\n')) {
    const { time, level, msg } = JSON.parse(line)
    assert.ok(time && /^(DEBUG|INFO|WARN|ERROR)$/.test(level) && msg, line)
  }
})

test('it listens on the socket that systemd hands over', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-socket-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const server = createServer()
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  const { fd } = (server as Server & { _handle: { fd: number } })._handle
  const child = spawn(
    'sh',
    ['-c', 'LISTEN_PID=$$ exec "$@"', 'sh', process.execPath, svcProgram, 'node-exporter', ...loadavg].concat(
      '--web.systemd-socket',
    ),
    {
      stdio: ['ignore', 'ignore', 'ignore', fd],
      env: { ...process.env, NODE_OPTIONS: '', LISTEN_FDS: '1' },
    },
  )
  const ended = new Promise(done => child.once('close', done))
  t.after(async () => {
    child.kill()
    await ended
  })
  server.close()
  await listening(port)
  await until('it answers', 20_000, async () => (await call(port, '/metrics')).status === 200)
})
