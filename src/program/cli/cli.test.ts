// owns: ports
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { freePort } from '../../../test/helpers/program.ts'
import { cleanEnvironment, svcProgram } from '../../../test/helpers/program-under-test.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-cli-'))
after(() => rmSync(directory, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

interface Result {
  readonly code: number | null
  readonly out: string
  readonly talk: string
}

function start(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, { cwd: directory, env: cleanEnvironment(env) })
  let out = ''
  let talk = ''
  child.stdout.on('data', chunk => {
    out += chunk
  })
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  const ended = new Promise<Result>(resolve => child.on('close', code => resolve({ code, out, talk })))
  return { child, ended, talk: () => talk }
}

function svc(args: string[], env?: Record<string, string>): Promise<Result> {
  return start([svcProgram, ...args], env).ended
}

test('version goes to standard output, as a line or as JSON', async () => {
  for (const args of [['version'], ['--version'], ['run', '--version']]) {
    const { code, out, talk } = await svc(args)
    assert.deepEqual([code, talk], [0, ''])
    assert.match(out, /^svc \d+\.\d+\.\d+ \(commit \S+, built \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\)\n$/)
  }
  const { out } = await svc(['version', '--json'])
  assert.deepEqual(Object.keys(JSON.parse(out)), ['version', 'commit', 'built', 'node', 'platform'])
})

test('help is for the program or for one command', async () => {
  const all = await svc(['--help'])
  assert.equal(all.code, 0)
  for (const name of [
    'run',
    'status',
    'top',
    'tap',
    'explain',
    'config',
    'validate',
    'completion',
    'version',
  ])
    assert.match(all.out, new RegExp(`^ {2}${name} `, 'm'))
  const one = await svc(['doctor', '--help'])
  assert.match(one.out, /^Usage: svc doctor /)
  assert.match(one.out.replaceAll(/\n +/g, ' '), /TOPIC +only one of runtime, traces,.*--json/s)
  const diagnostics = await svc(['help', 'diagnostics'])
  for (const line of [all.out, one.out, diagnostics.out].join('').split('\n'))
    assert.ok(line.length <= 80, line)
})

test('a command line that is wrong is refused with exit code 2, and nothing on standard output', async () => {
  const { code, out, talk } = await svc(['validte'])
  assert.deepEqual([code, out], [2, ''])
  assert.equal(talk, 'svc: unknown command "validte"; did you mean validate?\nRun "svc --help" for usage.\n')
  const flag = await svc(['queue', '--nothing'])
  assert.match(flag.talk, /Run "svc queue --help" for usage\.\n$/)
  const two = await svc(['validate', 'a.yaml', '--config', 'b.yaml'])
  assert.deepEqual([two.code, two.out], [2, ''])
  assert.match(two.talk, /cannot check two files at once/)
})

test('a valid configuration is summed up on standard output', async () => {
  const path = file('good.yaml', 'log_level: debug\notlp:\n  endpoint: h:4317\n  insecure: true\n')
  const want = `configuration is valid\n${path}: 3 settings; 1 variable of the environment\nmode collector, export to h:4317\n`
  for (const args of [
    ['--validate-config', path],
    ['validate', '--config', path],
    ['validate', path],
  ]) {
    const { code, out, talk } = await svc(args, { SVC_MODE: 'collector' })
    assert.deepEqual([code, out, talk], [0, want, ''])
  }
})

test('every problem of a configuration is one line on standard error, with exit code 2', async () => {
  const path = file('bad.yaml', 'mode: agnt\notlp:\n  endpiont: h:1\n')
  for (const args of [
    ['--validate-config', path],
    ['validate', path],
    ['--config', path],
  ]) {
    const { code, out, talk } = await svc(args)
    assert.deepEqual([code, out], [2, ''])
    const lines = talk.trimEnd().split('\n')
    assert.equal(lines.length, 2)
    assert.ok(lines[0]!.startsWith(`${path}:1:7: mode: `), lines[0])
    assert.ok(lines[1]!.startsWith(`${path}:3:3: otlp.endpiont: `), lines[1])
  }
})

test('a file that was named and is not there is an error', async () => {
  const { code, talk } = await svc(['--validate-config', '/nowhere/svc.yaml'])
  assert.equal(code, 2)
  assert.match(talk, /\/nowhere\/svc\.yaml/)
})

test('a feature that is set and is not built is told', async () => {
  const path = file('early.yaml', 'agent:\n  ebpf:\n    network:\n      capture_headers: [x-tenant]\n')
  const { code, out } = await svc(['validate', path])
  assert.equal(code, 0)
  assert.match(out, /^warning: agent\.ebpf\..*capture_headers is set: not built in this version/m)
})

test('what is wrong with a file is told to programs, too', async () => {
  const bad = file('bad-json.yaml', 'mode: agnet\n')
  const { code, out } = await svc(['validate', bad, '--json'])
  assert.equal(code, 2)
  const { valid, problems } = JSON.parse(out)
  assert.equal(valid, false)
  assert.deepEqual(
    [problems[0].file, problems[0].line, problems[0].column, problems[0].key],
    [bad, 1, 7, 'mode'],
  )
  const good = await svc(['validate', file('good-json.yaml', 'mode: collector\n'), '--json'])
  assert.equal(good.code, 0)
  assert.equal(JSON.parse(good.out).valid, true)
})

interface Diagnosis {
  readonly ok: boolean
  readonly groups: readonly {
    readonly topic: string
    readonly title: string
    readonly checks: readonly { readonly name: string; readonly state: string; readonly fault?: string }[]
  }[]
}

test('doctor prints the same checks as text and as JSON, and exits by them', async () => {
  // Two at once try no port twice, and no collector that may be in time for only one of them.
  const path = file(
    'doctor.yaml',
    'self_telemetry: {listen: 127.0.0.1:0}\nagent: {nodeexporter: {enabled: false}}\n',
  )
  const [text, json] = await Promise.all([
    svc(['doctor', '--config', path]),
    svc(['doctor', '--json', '--config', path]),
  ])
  const { ok, groups } = JSON.parse(json.out) as Diagnosis
  const checks = groups.flatMap(group => group.checks)
  assert.equal(ok, !checks.some(({ state }) => state === 'missing' || state === 'limited'))
  assert.equal(json.code, ok ? 0 : 1)
  assert.equal(text.code, json.code)
  for (const { title } of groups) assert.match(text.out, new RegExp(`^${title.toUpperCase()}$`, 'm'))
  for (const { name, state } of checks) assert.match(text.out, new RegExp(`^  ${state} +${name} `, 'm'))
  assert.ok(checks.some(({ name }) => name === 'BTF'))
  assert.doesNotMatch(text.out, /[^\n\x20-\x7e]/)
})

test('doctor tries one group by its topic, and names the topics when there is none of that name', async () => {
  const { code, out } = await svc(['doctor', 'Runtime', '--json'])
  assert.equal(code, 0)
  assert.deepEqual(
    (JSON.parse(out) as Diagnosis).groups.map(({ topic }) => topic),
    ['runtime'],
  )
  const wrong = await svc(['doctor', 'trace'])
  assert.deepEqual([wrong.code, wrong.out], [2, ''])
  assert.match(
    wrong.talk,
    /^svc: unknown topic "trace"; did you mean traces\? The topics are runtime, traces, /,
  )
})

test('doctor names a configuration that is wrong, a port that is taken and a receiver that is not there', async () => {
  // The doctor asks whoever listens whether it is an agent.
  const taken = createServer(socket => socket.destroy())
  await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address() as AddressInfo
  const closed = await freePort()
  const path = file(
    'trouble.yaml',
    `self_telemetry: {listen: "127.0.0.1:${port}"}\notlp: {endpoint: "127.0.0.1:${closed}", insecure: true}\n`,
  )
  const { code, out } = await svc(['doctor', '--config', path])
  await new Promise(resolve => taken.close(resolve))
  assert.equal(code, 1)
  const flat = out.replaceAll(/\n +/g, ' ')
  assert.match(
    flat,
    new RegExp(`missing +address +cannot listen on 127.0.0.1:${port}: .*\\(pid ${process.pid}\\)`),
  )
  assert.match(
    flat,
    new RegExp(`missing +receiver +cannot export traces, metrics, logs, profiles to 127.0.0.1:${closed}: `),
  )
  const wrong = await svc(['doctor', '--config', file('wrong.yaml', 'a: 1\nb: 2\n')])
  assert.equal(wrong.code, 1)
  assert.match(
    wrong.out.replaceAll(/\n +/g, ' '),
    /missing +settings +2 problems, the first: \S+wrong\.yaml:1:1: a: unknown key/,
  )
})

/** A program that runs the command `run` with an agent of the test's own, which keeps no process alive. */
function program(body: string): string[] {
  const runner = JSON.stringify(join(import.meta.dirname, 'run-agent.ts'))
  const source = `
    import { runAgent } from ${runner}
    const args = { value: () => undefined, has: () => false, words: [] }
    const agent = {
      view: { status: () => ({ mode: 'agent', degraded: [] }) },
      banner: () => [
        { state: 'ok', name: 'traces', detail: 'HTTP' },
        { state: 'failed', name: 'profiles', detail: 'no perf events', hint: 'do this' },
      ],
      links: () => [{ what: 'status', url: 'http://127.0.0.1:1/status' }],
      pageLink: () => undefined,
      ended: () => undefined,
      reload: async cause => console.error(JSON.stringify({ level: 'info', msg: 'asked by ' + cause })),
      stop: async () => {},
    }
    const start = async () => { ${body} }
    process.exitCode = await runAgent(args, start)
  `
  return ['--input-type=module', '-e', source]
}

interface LogRecord {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

function records(talk: string): LogRecord[] {
  return talk
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
}

async function saying(run: { child: ChildProcess; talk: () => string }, what: string): Promise<void> {
  while (!run.talk().includes(what)) {
    assert.equal(run.child.exitCode, null, run.talk())
    assert.doesNotMatch(run.talk(), /please report this/)
    await new Promise(resolve => run.child.stderr!.once('data', resolve))
  }
}

test('a start that fails says what, as the page of troubles has it', async () => {
  const queue = `pipeline: {export: {queue: {enabled: false, directory: ${join(directory, 'state/queue')}}}}\n`
  const quiet = `mode: collector\nself_telemetry: {listen: "127.0.0.1:0", admin_socket: ""${'%s'}}\n${queue}`
  const failing = async (name: string, own: string, more: string) => {
    const config = file(name, `${quiet.replace('%s', own)}${more}`)
    const { code, talk } = await svc(['run', '--config', config])
    return `${code}: ${records(talk).at(-1)!.msg}`
  }
  assert.match(
    await failing('tls.yaml', ', tls: {enabled: true, cert_file: /none.pem, key_file: /none.pem}', ''),
    /^2: cannot serve the management API: .*\/none\.pem/,
  )
  const tls = 'tls: {enabled: true, cert_file: /none.pem, key_file: /none.pem}'
  const host = `agent: {nodeexporter: {enabled: true, listen_address: "127.0.0.1:0", ${tls}}}\n`
  assert.match(await failing('host.yaml', '', host), /^2: cannot serve the host metrics: .*\/none\.pem/)
})

test('a program directory without a runtime says so', async () => {
  const root = join(directory, 'bare')
  mkdirSync(join(root, 'bin'), { recursive: true })
  const program = join(root, 'bin/svc')
  copyFileSync(join(import.meta.dirname, '../../../bin/svc'), program)
  // What it needs of the system, and no node.
  const tools = join(root, 'tools')
  mkdirSync(tools)
  for (const name of ['readlink', 'uname']) symlinkSync(`/usr/bin/${name}`, join(tools, name))
  const child = spawn('/bin/sh', [program, 'version'], { env: { PATH: tools } })
  let talk = ''
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  const code = await new Promise(resolve => child.once('close', resolve))
  assert.deepEqual([code, talk.slice(0, 31)], [1, 'svc: no Node.js runtime found: '])
})

test('the agent tells what works, answers signals, drains on SIGTERM and exits with 0', async () => {
  const run = start(program('return agent'))
  await saying(run, '"started"')
  run.child.kill('SIGUSR1')
  await saying(run, '"msg":"status"')
  run.child.kill('SIGHUP')
  await saying(run, 'asked by signal')
  run.child.kill('SIGTERM')
  const { code, out, talk } = await run.ended
  assert.deepEqual([code, out], [0, ''])
  const [starting, ...rest] = records(talk)
  assert.deepEqual(
    [starting!.level, starting!.msg, starting!.config],
    ['info', 'starting', 'no file (defaults)'],
  )
  assert.deepEqual(
    rest.map(({ level, msg }) => [level, msg]),
    [
      ['info', 'traces: HTTP'],
      ['warn', 'profiles: no perf events'],
      ['info', 'started'],
      ['info', 'status'],
      ['info', 'asked by signal'],
      ['info', 'stopping'],
      ['info', 'stopped'],
    ],
  )
  assert.deepEqual(rest[3]!.status, { mode: 'agent', degraded: [] })
  assert.equal(rest[1]!.hint, 'do this')
})

test('SIGUSR1 is answered at any level of the log', async () => {
  const run = start(program(`console.error('{"msg":"half way"}'); return agent`), { SVC_LOG_LEVEL: 'error' })
  await saying(run, 'half way')
  run.child.kill('SIGUSR1')
  await saying(run, '"msg":"status"')
  run.child.kill('SIGTERM')
  const { code, talk } = await run.ended
  assert.equal(code, 0)
  assert.deepEqual(
    records(talk).map(({ level, msg }) => [level, msg]),
    [
      [undefined, 'half way'],
      ['info', 'status'],
    ],
  )
})

test('a second signal ends the agent at once', async () => {
  const run = start(program('return { ...agent, stop: () => new Promise(() => {}) }'))
  await saying(run, '"started"')
  run.child.kill('SIGINT')
  await saying(run, '"stopping"')
  run.child.kill('SIGTERM')
  const { code, talk } = await run.ended
  assert.equal(code, 1)
  assert.match(records(talk).at(-1)!.msg, /^stopped immediately by a second signal/)
})

test('an agent that takes too long to stop is ended', async () => {
  const run = start(program('return { ...agent, stop: () => new Promise(() => {}) }'), {
    SVC_SHUTDOWN_TIMEOUT: '1ms',
  })
  await saying(run, '"started"')
  run.child.kill('SIGTERM')
  const { code, talk } = await run.ended
  assert.equal(code, 1)
  assert.match(records(talk).at(-1)!.msg, /^stopping took too long/)
})

test('a signal during the start is obeyed when the start is over', async () => {
  const run = start(
    program(
      `console.error('{"msg":"half way"}'); await new Promise(resolve => process.once('SIGTERM', resolve)); return agent`,
    ),
  )
  await saying(run, 'half way')
  run.child.kill('SIGTERM')
  const { code, talk } = await run.ended
  assert.equal(code, 0)
  assert.equal(records(talk).at(-1)!.msg, 'stopped')
})

test('a refusal to start is one log record and its exit code', async () => {
  const errors = JSON.stringify(join(import.meta.dirname, '../../foundation/lib/start-error.ts'))
  const body = `const { StartError } = await import(${errors}); throw new StartError('cannot load eBPF: no BTF', 3)`
  const { code, talk } = await start(program(body)).ended
  assert.equal(code, 3)
  const { level, msg } = records(talk).at(-1)!
  assert.deepEqual([level, msg], ['error', 'cannot load eBPF: no BTF'])
})

test('a stop that fails is logged and is no success', async () => {
  const run = start(program(`return { ...agent, stop: async () => { throw new Error('oops') } }`))
  await saying(run, '"started"')
  run.child.kill('SIGTERM')
  const { code, talk } = await run.ended
  assert.equal(code, 1)
  assert.match(String(records(talk).at(-1)!.error), /^Error: oops\n/)
})

test('a mistake in the agent is logged with its stack and ends it', async () => {
  const run = start(program(`setTimeout(() => { throw new Error('oops') }, 1); return agent`))
  const { code, talk } = await run.ended
  assert.equal(code, 1)
  const { level, error } = records(talk).at(-1)!
  assert.equal(level, 'error')
  assert.match(String(error), /^Error: oops\n\s+at /)
})

test('a reader that goes away ends nothing with an error', async () => {
  const child = spawn(process.execPath, [svcProgram, 'doctor'], { cwd: directory, env: cleanEnvironment() })
  child.stdout.destroy()
  let talk = ''
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  const code = await new Promise(resolve => child.on('close', resolve))
  assert.ok(code === 0 || code === 1)
  assert.equal(talk, '')
})
