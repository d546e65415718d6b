import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { loadConfig } from '../../config/index.ts'
import { change } from '../../foundation/lib/change.ts'
import { LogRing } from '../../foundation/lib/log-ring.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import { StartError } from '../../foundation/lib/start-error.ts'
import { banner } from '../agent/banner.ts'
import { value } from '../agent/self-metrics.ts'
import type { Agent, Subsystem } from '../agent/subsystem.ts'
import { reload } from './reload.ts'
import { Running } from './running.ts'

const started: Running[] = []
afterEach(async () => {
  for (const running of started.splice(0)) await running.stop()
})

/** Runs these, beside the reload. */
function runningOf(list: readonly Subsystem[], env: Readonly<Record<string, string>> = {}) {
  const load = (variables: Readonly<Record<string, string>>) =>
    loadConfig({ explicit: false, cwd: '/nonexistent', systemFile: '/nonexistent', env: variables })
  const loaded = load({})
  const logged: string[] = []
  const log = createLogger({ level: 'warn', format: 'text', write: line => logged.push(line) })
  const options = { loaded, log, logRing: new LogRing(), load: () => load(env) }
  const running = new Running([reload, ...list], options, Promise.resolve(new Map()))
  started.push(running)
  return { running, logged }
}

/** A subsystem that notes what is done with it. */
function noted(name: string, notes: string[], more: Partial<Subsystem<string>> = {}): Subsystem<string> {
  const note = (what: string) => void notes.push(`${what} ${name}`)
  const { create = () => name, ...rest } = more
  return {
    name,
    create: agent => {
      const own = create(agent)
      note('create')
      return own
    },
    start: own => note(`start ${own} of`),
    stop: own => note(`stop ${own} of`),
    close: own => note(`close ${own} of`),
    ...rest,
  }
}

const fails = (): never => {
  throw new Error('it broke')
}

test('what another takes is created first, once, and all steps are in the order of creation', async () => {
  const notes: string[] = []
  const below = noted('below', notes)
  const slow = noted('slow', notes, { create: async agent => `slow on ${agent.of(below)}` })
  const above = noted('above', notes, { create: agent => `above ${agent.of(slow)}` })
  const { running } = runningOf([slow, above, below])
  await running.create()
  assert.deepEqual(notes.splice(0), ['create below', 'create slow', 'create above'])
  assert.equal(running.of(above), 'above slow on below')
  for (const step of ['start', 'stop', 'close'] as const) {
    await running[step]()
    const want = [`${step} below of below`, `${step} slow on below of slow`]
    assert.deepEqual(notes.splice(0), [...want, `${step} above slow on below of above`])
  }
})

test('those that take each other, or one that is not created yet, are a mistake that names it', async () => {
  const first: Subsystem<string> = { name: 'first', create: agent => agent.of(second) }
  const second: Subsystem<string> = { name: 'second', create: (agent: Agent): string => agent.of(first) }
  const cycle = runningOf([first, second]).running
  await assert.rejects(
    cycle.create(),
    /^Error: cannot use first: it is not created yet; of two that need each/,
  )
  const slow: Subsystem<string> = { name: 'slow', create: async () => 'slow' }
  const early: Subsystem<string> = { name: 'early', create: agent => agent.of(slow) }
  await assert.rejects(
    runningOf([early, slow]).running.create(),
    /^Error: cannot use slow: it is created asynchronously/,
  )
  let meanwhile: unknown
  const taken: Subsystem<string> = {
    name: 'taken',
    create: async agent => {
      try {
        agent.of(taken)
      } catch (error) {
        meanwhile = error
      }
      await Promise.resolve()
      return 'taken'
    },
  }
  const { running } = runningOf([taken])
  await running.create()
  assert.match(String(meanwhile), /cannot use taken: it is not created yet/)
  assert.equal(running.of(taken), 'taken')
})

test('what create throws ends the start, and is what the next one that takes it gets as well', async () => {
  const notes: string[] = []
  const first = noted('first', notes)
  const broken: Subsystem<string> = {
    name: 'broken',
    create: () => {
      throw new StartError('no room', 2)
    },
  }
  const late = noted('late', notes)
  const { running } = runningOf([first, broken, late])
  await assert.rejects(running.create(), new StartError('no room', 2))
  assert.throws(() => running.of(broken), new StartError('no room', 2))
  await running.stop()
  await running.close()
  assert.deepEqual(notes, ['create first', 'stop first of first', 'close first of first'])
  assert.deepEqual([running.ifCreated(first), running.ifCreated(late)], ['first', undefined])
  assert.deepEqual(notes.length, 3)
})

test('one whose step throws or rejects takes it from no other', async () => {
  const notes: string[] = []
  const broken = noted('broken', notes, { start: fails, stop: async () => fails(), close: fails })
  const { running, logged } = runningOf([broken, noted('other', notes)])
  await running.create()
  await running.start()
  const [standing, ...others] = running.states().filter(({ subsystem }) => subsystem !== reload)
  assert.deepEqual(others, [])
  assert.equal(standing?.state.state, 'failed')
  assert.equal(standing?.state.faults?.[0]?.reason, 'it broke')
  await running.stop()
  await running.close()
  assert.deepEqual(notes.slice(2), ['start other of other', 'stop other of other', 'close other of other'])
  const said = logged.map(line => /cannot \w+ \w+ reason="it broke"/.exec(line)?.[0])
  assert.deepEqual(
    said,
    ['start', 'stop', 'close'].map(step => `cannot ${step} broken reason="it broke"`),
  )
})

test('one that cannot tell its state is failed; banner, faults and metrics are those of the others', async () => {
  const broken: Subsystem<undefined> = {
    name: 'broken',
    banner: 'always',
    create: () => undefined,
    state: fails,
    sync: fails,
    metrics: {
      broken_total: { help: 'Cannot be read.', collect: fails },
      broken_seconds: { help: 'Cannot be read.', histogram: fails },
    },
  }
  const whole: Subsystem<undefined> = {
    name: 'whole',
    banner: 'always',
    create: () => undefined,
    state: () => ({ state: 'ok', detail: 'works' }),
    metrics: { whole: value('A number.', () => 7) },
  }
  const { running, logged } = runningOf([broken, whole])
  await running.create()
  const [fault, ...others] = running.faults()
  assert.deepEqual([fault?.subsystem, fault?.reason, others], ['broken', 'it broke', []])
  const lines = banner(running.states(), running.loaded()).map(({ state, name, detail }) => [
    state,
    name,
    detail,
  ])
  assert.deepEqual(lines, [
    ['failed', 'broken', 'it broke'],
    ['ok', 'whole', 'works'],
  ])
  for (let page = 0; page < 2; page++) {
    const text = running.metrics.registry.write()
    assert.match(text, /^svc_whole 7$/m)
    assert.match(text, /^svc_degraded\{subsystem="broken"\} 1$/m)
    await Promise.resolve()
  }
  const about = logged.map(line => /cannot (.*?) reason="it broke"/.exec(line)?.[1])
  assert.deepEqual(about.sort(), [
    'read metric broken_seconds',
    'read metric broken_total',
    'read the state of broken',
    'update the counts of broken',
  ])
})

test('a reload waits until all are created, and changes those whose keys differ', async () => {
  const changed: string[] = []
  const keyed = (name: string, ...keys: string[]): Subsystem<undefined> => ({
    name,
    keys,
    create: () => undefined,
    prepare: () => change(() => void changed.push(name)),
  })
  let created = () => {}
  const slow: Subsystem<undefined> = {
    name: 'slow',
    create: () =>
      new Promise(resolve => {
        created = () => resolve(undefined)
      }),
  }
  const list = [
    slow,
    keyed('branch', 'agent.logs'),
    keyed('key', 'log_level'),
    keyed('other', 'agent.log', 'log'),
  ]
  const env = { SVC_LOG_LEVEL: 'debug', SVC_AGENT_LOGS_ENABLED: 'false' }
  const { running } = runningOf(list, env)
  const starting = running.create()
  let isThere = false
  void running.contents.then(() => {
    isThere = true
  })
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(isThere, false)
  created()
  await starting
  await running.contents
  const next = running.options.load().config
  const keys = new Set(['log_level', 'agent.logs.enabled'])
  for (const part of running.reloadables) (await part.prepare(next, keys))?.commit()
  assert.deepEqual(changed, ['branch', 'key'])
  const without: Subsystem<undefined> = { name: 'without', create: () => undefined, prepare: () => undefined }
  assert.throws(() => running.of(without), /cannot create without: no keys/)
})
