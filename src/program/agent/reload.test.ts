import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { heapGrowth } from '../../../test/helpers/heap.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { type Config, contentFiles, formatProblems, loadConfig, redacted } from '../../config/index.ts'
import type { Change } from '../../foundation/lib/change.ts'
import { readContent } from '../../foundation/lib/file-content.ts'
import { createLogger, type LogFormat } from '../../foundation/lib/logger.ts'
import {
  type Reloadable,
  Reloader,
  type ReloaderOptions,
  type ReloadOutcome,
  reloadMessage,
} from './reload.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-reload-'))
after(() => rmSync(directory, { recursive: true, force: true }))

/** A part that holds what it was given, and the contents of its certificate, as a TLS listener does. */
class Listener implements Reloadable {
  readonly name = 'listener'
  running: Config
  certificate: string
  readonly asked: string[][] = []
  open = 0
  commits = 0
  /** Throws or waits, where a test wants it. */
  hurdle: (after: Config) => void | Promise<void> = () => undefined

  constructor(config: Config) {
    this.running = config
    this.certificate = certificateOf(config)
  }

  async prepare(config: Config, changed: ReadonlySet<string>): Promise<Change | undefined> {
    this.asked.push([...changed])
    await this.hurdle(config)
    const certificate = certificateOf(config)
    this.open++
    return {
      commit: () => {
        this.open--
        this.commits++
        this.running = config
        this.certificate = certificate
      },
      abort: () => {
        this.open--
      },
    }
  }
}

function certificateOf({ self_telemetry: { tls } }: Config): string {
  if (tls.cert_file === '') return ''
  try {
    return readFileSync(tls.cert_file, 'utf8')
  } catch (cause) {
    throw new Error(`cannot read self_telemetry.tls.cert_file ${tls.cert_file}`, { cause })
  }
}

interface SceneOptions extends Partial<Omit<ReloaderOptions, 'parts'>> {
  readonly parts?: (listener: Listener) => readonly Reloadable[]
  /** Nobody named the file: it is found where the system has it. */
  readonly found?: boolean
}

let scenes = 0

/** An agent's configuration in a folder of its own, with a part that runs by it. */
function scene(context: TestContext, yaml: string, options: SceneOptions = {}) {
  const folder = join(directory, String(scenes++))
  mkdirSync(join(folder, 'cwd'), { recursive: true })
  const file = join(folder, 'config.yaml')
  /** As an editor does it that does not leave a file half written. */
  const write = (text: string) => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  write(yaml)
  const source = options.found ? { explicit: false, systemFile: file } : { explicit: true, path: file }
  const load = () => loadConfig({ ...source, env: {}, cwd: join(folder, 'cwd') })
  const loaded = load()
  assert.equal(formatProblems(loaded.problems), '')
  const log: { level: string; msg: string; [field: string]: unknown }[] = []
  const format: LogFormat = 'json'
  const listener = new Listener(loaded.config)
  const named = [...contentFiles(loaded).values()]
  const reloader = new Reloader({
    loaded,
    contents: Promise.resolve(new Map(named.map(path => [path, readContent(path, false).state]))),
    load,
    log: createLogger({ level: 'debug', format, write: line => log.push(JSON.parse(line)) }),
    settleMs: 1,
    ...options,
    parts: options.parts?.(listener) ?? [listener],
  })
  context.after(() => reloader.stop())
  return { folder, file, write, log, listener, reloader }
}

async function until(what: string, holds: () => boolean): Promise<void> {
  while (!holds()) await delay(5)
  assert.ok(holds(), what)
}

test('what changed is applied, named and logged', async context => {
  const { write, log, listener, reloader } = scene(context, 'log_level: info\n', { now: () => 5000 })
  const { hash } = reloader.state
  write('log_level: warn\notlp: {endpoint: "a:1", headers: {Authorization: Bearer hunter2}}\n')
  const outcome = await reloader.reload('request')
  assert.ok(outcome.kind === 'applied')
  assert.deepEqual(outcome.changed, ['log_level', 'otlp.endpoint', 'otlp.headers'])
  assert.ok(listener.asked[0]?.includes('otlp.traces.endpoint'))
  assert.equal(listener.running.otlp.endpoint, 'a:1')
  assert.equal(listener.open, 0)
  assert.equal(reloader.current.config, listener.running)
  assert.notEqual(outcome.hash, hash)
  const message = 'configuration reloaded: 3 keys changed (log_level, otlp.endpoint, otlp.headers)'
  assert.deepEqual(
    log.map(({ timestamp, ...line }) => line),
    [{ level: 'info', msg: message, cause: 'request', hash: outcome.hash }],
  )
  assert.deepEqual(reloader.state, {
    lastSuccessful: true,
    lastSuccessMs: 5000,
    lastAttemptMs: 5000,
    reloads: 1,
    failures: 0,
    hash: outcome.hash,
    lastError: '',
    place: '',
    hint: '',
    requiresRestart: [],
  })
})

test('the same configuration is a no-op, however it is laid out', async context => {
  const { write, log, listener, reloader } = scene(context, 'log_level: warn\n')
  write('# a comment\n\nsvc:\n  log_level: warn\n')
  assert.deepEqual(await reloader.reload('signal'), {
    kind: 'unchanged',
    restart: [],
    hash: reloader.state.hash,
  })
  assert.deepEqual(listener.asked, [])
  assert.equal(reloader.current.origins.get('log_level')?.line, 4)
  assert.deepEqual([log.length, log[0]?.level, log[0]?.msg], [1, 'info', 'configuration is unchanged'])
})

test('what needs a restart keeps its value and is told until it fits again', async context => {
  const { write, log, listener, reloader } = scene(context, 'service_name: one\n')
  write('service_name: two\nlog_level: warn\n')
  const first = await reloader.reload('signal')
  assert.ok(first.kind === 'applied')
  assert.deepEqual([first.changed, first.restart], [['log_level'], ['service_name']])
  assert.deepEqual(listener.asked, [['log_level']])
  assert.equal(listener.running.service_name, 'one')
  assert.equal(reloader.current.config.service_name, 'one')
  const again = await reloader.reload('signal')
  assert.deepEqual([again.kind, reloader.state.requiresRestart], ['unchanged', ['service_name']])
  write('service_name: three\nlog_level: warn\n')
  assert.equal((await reloader.reload('signal')).kind, 'unchanged')
  write('service_name: one\nlog_level: warn\n')
  const back = await reloader.reload('signal')
  assert.equal(reloadMessage(back), 'configuration reloaded: no keys pending a restart')
  assert.deepEqual(reloader.state.requiresRestart, [])
  assert.deepEqual(
    log.map(({ level, msg }) => [level, msg]),
    [
      ['warn', 'configuration reloaded: 1 key changed (log_level); needs a restart: service_name'],
      ['warn', 'configuration is unchanged; needs a restart: service_name'],
      ['warn', 'configuration is unchanged; needs a restart: service_name'],
      ['info', 'configuration reloaded: no keys pending a restart'],
    ],
  )
})

test('what this version does not do is not said to be in effect', async context => {
  const { write, log, listener, reloader } = scene(context, '')
  write('agent: {ebpf: {network: {capture_headers: [accept]}}}\nlog_level: warn\n')
  const outcome = await reloader.reload('request')
  assert.ok(outcome.kind === 'applied')
  assert.deepEqual(outcome.changed, ['log_level'])
  assert.deepEqual(outcome.ignored, ['agent.ebpf.network.capture_headers'])
  assert.match(reloadMessage(outcome), /; not built in this version: agent\.ebpf\.network\.capture_headers$/)
  assert.equal(log[0]?.level, 'warn')
  assert.ok(listener.asked[0]?.includes('agent.ebpf.network.capture_headers'), 'its part may refuse it')
})

test('an invalid file is refused with every problem, and no secret is told', async context => {
  const { write, log, listener, reloader } = scene(context, 'log_level: warn\n')
  const running = JSON.stringify(redacted(reloader.current.config, reloader.current.origins))
  write(
    'otlp:\n  endpiont: a:1\n  headers: hunter2\nlog_level: loud\nself_telemetry: {auth: {bearer_token: [hunter2]}}\n',
  )
  const outcome = await reloader.reload('request')
  assert.ok(outcome.kind === 'invalid')
  assert.deepEqual(
    outcome.problems.map(({ key, line }) => [key, line]),
    [
      ['otlp.endpiont', 2],
      ['otlp.headers', 3],
      ['log_level', 4],
      ['self_telemetry.auth.bearer_token', 5],
    ],
  )
  assert.deepEqual(listener.asked, [])
  assert.equal(JSON.stringify(redacted(reloader.current.config, reloader.current.origins)), running)
  assert.match(
    reloader.state.lastError,
    /^reload rejected: .*config\.yaml:2:3: otlp\.endpiont: .*; previous configuration still active$/,
  )
  assert.deepEqual([reloader.state.lastSuccessful, reloader.state.failures], [false, 1])
  assert.match(reloader.state.place, /config\.yaml:2:3$/)
  assert.match(reloader.state.hint, /svc validate lists all errors/)
  assert.equal(log.length, 1)
  assert.equal(log[0]?.level, 'error')
  assert.equal((log[0]!.problems as string[]).length, 4)
  assert.doesNotMatch(JSON.stringify([log, outcome, reloader.state]), /hunter2/)
  write('log_level: error\n')
  assert.equal((await reloader.reload('request')).kind, 'applied')
  const { lastSuccessful, lastError, place, hint } = reloader.state
  assert.deepEqual([lastSuccessful, lastError, place, hint], [true, '', '', ''])
})

test('a part that refuses leaves everything as it was', async context => {
  const { write, log, listener, reloader } = scene(context, 'log_level: info\n', {
    parts: listener => [
      listener,
      { name: 'idle', prepare: () => undefined },
      {
        name: 'exporter',
        prepare({ otlp }) {
          if (otlp.endpoint === 'bad:1') throw new Error('cannot use otlp.endpoint', { cause: 'it is bad' })
          return { commit: () => undefined, abort: () => undefined }
        },
      },
    ],
  })
  const before = reloader.current
  const { hash } = reloader.state
  write('log_level: warn\notlp: {endpoint: "bad:1"}\nservice_name: other\n')
  const outcome = await reloader.reload('file')
  assert.deepEqual(outcome, {
    kind: 'failed',
    part: 'exporter',
    error: 'cannot use otlp.endpoint: it is bad',
    partial: false,
  })
  assert.equal(
    log[0]?.msg,
    'cannot apply the configuration: exporter: cannot use otlp.endpoint: it is bad; previous configuration still active',
  )
  assert.deepEqual([listener.open, listener.commits, listener.asked.length], [0, 0, 1])
  assert.equal(reloader.current, before)
  assert.deepEqual([reloader.state.hash, reloader.state.requiresRestart], [hash, []])
  write('log_level: warn\n')
  assert.equal((await reloader.reload('file')).kind, 'applied')
})

test('parts are aborted in reverse, and all are committed in one turn of the event loop', async context => {
  const events: string[] = []
  const part = (name: string): Reloadable => ({
    name,
    async prepare(config) {
      await delay(1)
      if (config.log_level === 'error' && name === 'c') throw new Error('no')
      return {
        commit: () => {
          if (name === 'a') setImmediate(() => events.push('next turn'))
          events.push(`commit ${name}`)
        },
        abort: () => events.push(`abort ${name}`),
      }
    },
  })
  const { write, reloader } = scene(context, '', { parts: () => [part('a'), part('b'), part('c')] })
  write('log_level: error\n')
  assert.equal((await reloader.reload('request')).kind, 'failed')
  write('log_level: warn\n')
  assert.equal((await reloader.reload('request')).kind, 'applied')
  await until('the next turn', () => events.includes('next turn'))
  assert.deepEqual(events, ['abort b', 'abort a', 'commit a', 'commit b', 'commit c', 'next turn'])
})

test('a part that never gets ready ends its own reload, not those after it', async context => {
  const { write, listener, reloader } = scene(context, '', { prepareMs: 20 })
  let free: () => void = () => undefined
  listener.hurdle = () => new Promise(resolve => (free = resolve))
  write('log_level: warn\n')
  const outcome = await reloader.reload('request')
  assert.ok(outcome.kind === 'failed')
  assert.match(outcome.error, /^not ready after 20 ms$/)
  free()
  await until('what came too late is aborted', () => listener.asked.length === 1 && listener.open === 0)
  listener.hurdle = () => undefined
  assert.equal((await reloader.reload('request')).kind, 'applied')
})

test('a part that fails in the middle of the change is told as that', async context => {
  const commit = () => {
    throw new Error('boom')
  }
  const { write, listener, reloader } = scene(context, '', {
    parts: listener => [{ name: 'bad', prepare: () => ({ commit, abort: () => undefined }) }, listener],
  })
  write('log_level: warn\n')
  const outcome = await reloader.reload('request')
  assert.deepEqual(outcome, { kind: 'failed', part: 'bad', error: 'boom', partial: true })
  assert.match(reloadMessage(outcome), /applied in part; restart svc$/)
  assert.equal(listener.commits, 1)
  assert.equal(reloader.current.config.log_level, 'warn')
})

test('a new content of a certificate is a change of its key; a bad one is refused until it changes again', async context => {
  const { folder, file, write, listener, reloader } = scene(context, '')
  const certificate = join(folder, 'tls.crt')
  writeFileSync(certificate, 'one')
  write(`self_telemetry: {tls: {cert_file: ${certificate}}}\n`)
  await reloader.reload('request')
  assert.equal(listener.certificate, 'one')
  assert.equal((await reloader.reload('request')).kind, 'unchanged')
  writeFileSync(certificate, 'two')
  const outcome = await reloader.reload('request')
  assert.deepEqual(outcome.kind === 'applied' && outcome.changed, ['self_telemetry.tls.cert_file'])
  assert.equal(listener.certificate, 'two')
  unlinkSync(certificate)
  const failed = await reloader.reload('request')
  assert.ok(failed.kind === 'failed')
  assert.match(failed.error, /^cannot read self_telemetry\.tls\.cert_file .*tls\.crt: ENOENT/)
  assert.equal(listener.certificate, 'two')
  writeFileSync(certificate, 'three')
  assert.equal((await reloader.reload('request')).kind, 'applied')
  assert.equal(listener.certificate, 'three')
  assert.equal(reloader.current.file, file)
})

test('a certificate that is replaced while the agent starts is a change', async context => {
  const certificate = join(directory, 'at-start.crt')
  writeFileSync(certificate, 'one')
  const { listener, reloader } = scene(context, `self_telemetry: {tls: {cert_file: ${certificate}}}\n`)
  assert.equal(listener.certificate, 'one')
  writeFileSync(certificate, 'two')
  const outcome = await reloader.reload('request')
  assert.deepEqual(outcome.kind === 'applied' && outcome.changed, ['self_telemetry.tls.cert_file'])
  assert.equal(listener.certificate, 'two')
})

test('the look at the files takes up a new configuration, secret or certificate by itself', async context => {
  const hot = 'pipeline: {operations: {hot_reload: {check_interval: 1s}}}\n'
  const { folder, write, log, listener, reloader } = scene(context, hot)
  const [token, certificate] = [join(folder, 'token'), join(folder, 'tls.crt')]
  writeFileSync(token, 'hunter1')
  writeFileSync(certificate, 'one')
  const token1 = `self_telemetry: {auth: {bearer_token: "\${file:${token}}"}, tls: {cert_file: ${certificate}}}\n`
  write(`${hot}${token1}`)
  const tokenIs = (want: string) => () => listener.running.self_telemetry.auth.bearer_token === want
  await until('the file is taken', tokenIs('hunter1'))
  writeFileSync(token, 'hunter2')
  await until('the secret is taken', tokenIs('hunter2'))
  writeFileSync(certificate, 'two')
  await until('the certificate is taken', () => listener.certificate === 'two')
  write('log_level: loud\n')
  await until('the invalid file is refused', () => reloader.state.failures === 1)
  write(`${hot}${token1}log_level: warn\n`)
  await until('the good file is taken', () => listener.running.log_level === 'warn')
  assert.deepEqual(
    log.map(({ level, cause }) => [level, cause]),
    ['info', 'info', 'info', 'error', 'info'].map(level => [level, 'file']),
    'content that was refused is tried once',
  )
  assert.doesNotMatch(JSON.stringify(log), /hunter/)
})

test('another file can be the sign to read the configuration again', async context => {
  const sign = join(directory, 'sign')
  writeFileSync(sign, '1')
  const hot = (level: string) =>
    `log_level: ${level}\npipeline: {operations: {hot_reload: {check_interval: 1s, config_path: ${sign}}}}\n`
  const { write, listener, reloader } = scene(context, hot('info'))
  await reloader.reload('request')
  write(hot('warn'))
  writeFileSync(sign, '2')
  await until('the sign is seen', () => listener.running.log_level === 'warn')
})

test('a file that is gone is a problem, told once, and the old configuration goes on', async context => {
  const hot = 'pipeline: {operations: {hot_reload: {check_interval: 1s}}}\n'
  const { file, write, log, listener, reloader } = scene(context, `log_level: warn\n${hot}`, { found: true })
  unlinkSync(file)
  await until('it is missed', () => log.length > 0)
  assert.match(
    log[0]!.msg,
    /config\.yaml: cannot read the configuration: no such file; previous configuration still active$/,
  )
  assert.equal(reloader.current.config.log_level, 'warn')
  write(`log_level: error\n${hot}`)
  await until('it is back', () => listener.running.log_level === 'error')
  assert.deepEqual(
    log.map(({ level }) => level),
    ['error', 'info'],
  )
})

test('a reload does not go over to another file, but finds one where there was none', async context => {
  const { folder, listener, reloader } = scene(context, 'log_level: warn\n', { found: true })
  const stronger = join(folder, 'cwd', 'config.yaml')
  writeFileSync(stronger, 'log_level: error\n')
  assert.equal((await reloader.reload('request')).kind, 'invalid')
  assert.match(
    reloader.state.lastError,
    /: config\.yaml would apply instead; restart svc to change to it; previous configuration still active$/,
  )
  assert.deepEqual(listener.asked, [])
  const none = loadConfig({ explicit: false, env: {}, cwd: '/nonexistent', systemFile: '/nonexistent' })
  const second = scene(context, 'log_level: warn\n', { found: true, loaded: none })
  assert.equal((await second.reloader.reload('request')).kind, 'applied')
  assert.equal(second.reloader.current.filePath, second.file)
})

test('what came through a pipe is not read again, and a pipe that took the place of the file neither', async context => {
  const { file, reloader } = scene(context, 'log_level: warn\n')
  unlinkSync(file)
  execFileSync('mkfifo', [file])
  const outcome = await reloader.reload('request')
  assert.ok(outcome.kind === 'invalid')
  assert.match(reloader.state.lastError, /not a regular file/)
  const piped = { ...reloader.current, once: true }
  const second = scene(context, '', { loaded: piped, load: () => assert.fail('nothing is there to read') })
  assert.equal((await second.reloader.reload('signal')).kind, 'invalid')
  assert.match(second.reloader.state.lastError, /it was a pipe and cannot be read again/)
})

test('a reload can be switched off, by the configuration too', async context => {
  const hot = (keys: string) => `pipeline: {operations: {hot_reload: {${keys}}}}\n`
  const { write, log, reloader } = scene(context, hot('enable_sighup: false'))
  const off = await reloader.reload('signal')
  assert.deepEqual(off, { kind: 'off', key: 'pipeline.operations.hot_reload.enable_sighup' })
  write(hot('enabled: false'))
  assert.equal((await reloader.reload('request')).kind, 'applied')
  write(hot('enabled: true'))
  const enabled = { kind: 'off', key: 'pipeline.operations.hot_reload.enabled' } as const
  assert.deepEqual(await reloader.reload('request'), enabled)
  assert.equal(
    reloadMessage(enabled),
    'cannot reload: pipeline.operations.hot_reload.enabled is false; restart svc to apply a changed configuration',
  )
  assert.deepEqual(
    log.map(({ level }) => level),
    ['warn', 'info', 'warn'],
  )
  assert.equal(reloader.state.reloads, 1)
  reloader.stop()
  assert.deepEqual(await reloader.reload('request'), { kind: 'off', key: '' })
})

test('a stop during a reload keeps the change from taking effect', async context => {
  const { write, listener, reloader } = scene(context, '')
  listener.hurdle = () => reloader.stop()
  write('log_level: warn\n')
  assert.deepEqual(await reloader.reload('request'), { kind: 'off', key: '' })
  assert.deepEqual([listener.open, listener.commits, listener.running.log_level], [0, 0, 'info'])
})

test('concurrent reloads run one after another; those that wait too many share the last run', async context => {
  const { write, listener, reloader } = scene(context, '')
  let under = 0
  listener.hurdle = async () => {
    assert.equal(++under, 1)
    await delay(1)
    under--
  }
  write('backoff: {initial: 11ms}\n')
  const first = reloader.reload('request')
  const outcomes = [first]
  for (let i = 0; i < 40; i++) outcomes.push(reloader.reload('request'))
  assert.equal(new Set(outcomes).size, 16)
  await first
  write('backoff: {initial: 12ms}\n')
  const late = reloader.reload('request')
  const kinds = (await Promise.all([...new Set(outcomes), late])).map(({ kind }) => kind)
  assert.deepEqual(kinds.filter(kind => kind === 'applied').length, 2)
  assert.equal(listener.running.backoff.initial, 12)
  assert.equal(reloader.state.reloads, 17)
})

test('what waits does not share the run of a cause that is switched off', async context => {
  const hot = 'pipeline: {operations: {hot_reload: {enable_sighup: false}}}\n'
  const { write, reloader } = scene(context, hot)
  const signals = Array.from({ length: 40 }, () => reloader.reload('signal'))
  write(`${hot}log_level: warn\n`)
  const requests = Array.from({ length: 40 }, () => reloader.reload('request'))
  assert.equal(new Set([...signals, ...requests]).size, 17)
  assert.deepEqual(new Set((await Promise.all(signals)).map(({ kind }) => kind)), new Set(['off']))
  assert.equal((await requests[0])?.kind, 'applied')
})

const variants = [
  '',
  'log_level: warn\n',
  'log_level: loud\n',
  'service_name: other\notlp: {endpoint: "a:1"}\n',
  'otlp: {endpoint: "b:2", headers: {a: x}}\nagent: {gpu: {interval: 1m}}\n',
  'mode: collector\nbackoff: {max: 1m}\n',
  'otlp: {endpoint: "refused:1"}\n',
  'broken: [\n',
]

test('whatever came before, in the end what runs is the last file that was good', async context => {
  const { file, write, listener, reloader } = scene(context, '')
  listener.hurdle = ({ otlp }) => {
    if (otlp.endpoint === 'refused:1') throw new Error('refused')
  }
  const fresh = () => loadConfig({ explicit: true, path: file, env: {} })
  const good = (outcome: ReloadOutcome) => outcome.kind === 'applied' || outcome.kind === 'unchanged'
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...variants), { minLength: 1, maxLength: 8 }), async texts => {
      let last = reloader.current
      for (const text of texts) {
        write(text)
        const outcome = await reloader.reload('request')
        if (!good(outcome)) {
          assert.equal(reloader.current, last)
          continue
        }
        const { config } = fresh()
        const want = {
          ...config,
          mode: 'agent',
          service_name: 'svc',
          agent: {
            ...config.agent,
            ebpf: { ...config.agent.ebpf, enabled: true },
            nodeexporter: { ...config.agent.nodeexporter, enabled: true },
          },
        }
        assert.deepEqual(reloader.current.config, want)
        assert.deepEqual({ ...listener.running }, want)
        last = reloader.current
      }
      assert.equal(listener.open, 0)
    }),
    { numRuns: 40 },
  )
})

test('hundreds of reloads leave no memory and no descriptor behind', async context => {
  const { folder, write, log, listener, reloader } = scene(context, '')
  const secret = join(folder, 'secret')
  const file = (i: number) =>
    `otlp: {endpoint: "host-${i}:1", headers: {a: "\${file:${secret}}"}}\nservice_name: s${i}\n` +
    `self_telemetry: {tls: {cert_file: ${secret}}}\n`
  const descriptors = () => readdirSync('/proc/self/fd').length
  const each = soak ? 250 : 100
  let reloads = 0
  const run = async () => {
    for (const end = reloads + each; reloads < end; reloads++) {
      const i = reloads
      writeFileSync(secret, `secret ${i}`)
      write(i % 10 === 9 ? 'log_level: loud\n' : file(i % 2))
      const { kind } = await reloader.reload('request')
      assert.equal(kind, i % 10 === 9 ? 'invalid' : 'applied')
    }
    listener.asked.length = 0
    log.length = 0
  }
  await run()
  const settled = descriptors()
  const grown = await heapGrowth(run)
  assert.equal(descriptors(), settled)
  assert.ok(grown < 64 * 1024, `${grown} bytes more of ${each} reloads`)
  context.diagnostic(`${grown} bytes more of ${reloads} reloads`)
})
