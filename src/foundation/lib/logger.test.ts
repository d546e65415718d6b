import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogRing } from './log-ring.ts'
import { createLogger, errorText, type Level, type LogFormat, limitRepeats } from './logger.ts'

function logger(level: Level = 'debug', format: LogFormat = 'json') {
  const lines: string[] = []
  const log = createLogger({ level, format, write: line => lines.push(line), now: () => 1_763_690_000_123 })
  return { log, lines }
}

test('a JSON record has timestamp, level, msg and its fields, on one line', () => {
  const { log, lines } = logger()
  log.info('export completed', { spans: 3, latency_ms: 45, endpoint: 'h:4317', nothing: undefined })
  assert.deepEqual(lines, [
    '{"timestamp":"2025-11-21T01:53:20.123Z","level":"info","msg":"export completed","spans":3,"latency_ms":45,"endpoint":"h:4317"}\n',
  ])
})

test('fields of any kind give valid JSON', () => {
  const { log, lines } = logger()
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const error = new Error('outer', { cause: new Error('inner') })
  log.warn('line\nbreak', { error, cycle, big: 2n ** 64n, nested: { n: 1n }, level: 'mine', f: () => 1 })
  assert.deepEqual(JSON.parse(lines[0]!), {
    timestamp: '2025-11-21T01:53:20.123Z',
    level: 'warn',
    msg: 'line\nbreak',
    error: 'outer: inner',
    cycle: '[object Object]',
    big: '18446744073709551616',
    nested: { n: '1' },
    level_: 'mine',
  })
  assert.equal(lines[0]!.indexOf('\n'), lines[0]!.length - 1)
})

test('records below the level are left out, and the level can change', () => {
  const { log, lines } = logger('warn')
  log.info('no')
  log.warn('yes')
  log.answer('asked', { n: 1 })
  assert.equal(log.enabled('info'), false)
  log.configure({ level: 'debug' })
  assert.equal(log.enabled('debug'), true)
  log.debug('now')
  assert.deepEqual(
    lines.map(line => JSON.parse(line).msg),
    ['yes', 'asked', 'now'],
  )
})

test('the format can change too, and a ring keeps JSON whatever it is', () => {
  const lines: string[] = []
  const ring = new LogRing()
  const log = createLogger({
    level: 'info',
    format: 'text',
    color: true,
    ring,
    write: line => lines.push(line),
    now: () => 1_763_690_000_123,
  })
  log.debug('no')
  log.info('one', { n: 1 })
  log.configure({ format: 'json' })
  log.warn('two')
  log.configure({ level: 'debug', format: 'text' })
  log.debug('three')
  const [one, two, three] = lines
  assert.match(one!, /^\x1b\[90m2025-11-21T01:53:20\.123Z\x1b\[0m .*one/)
  assert.equal(JSON.parse(two!).msg, 'two')
  assert.match(three!, /^\x1b\[90m.*three/)
  assert.deepEqual(
    ring
      .text()
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line))
      .map(({ level, msg, n }) => [level, msg, n]),
    [
      ['info', 'one', 1],
      ['warn', 'two', undefined],
      ['debug', 'three', undefined],
    ],
  )
})

test('text shows fields as key=value and writes control characters out', () => {
  const { log, lines } = logger('debug', 'text')
  log.error('bad \x1b[2Jname\nINFO forged', { path: '/a', name: 'a b\x9b', n: 1, o: { a: 1 } })
  assert.deepEqual(lines, [
    '2025-11-21T01:53:20.123Z ERROR bad \\x1b[2Jname\\x0aINFO forged path=/a name="a b\\x9b" n=1 o={"a":1}\n',
  ])
})

test('repetitions are held back and counted', () => {
  const { log, lines } = logger()
  let now = 0
  const limited = limitRepeats(log, 1000, () => now)
  for (const at of [0, 10, 999, 1000, 2500]) {
    now = at
    limited('warn', 'k', 'same', { at })
    if (at === 10) limited('warn', 'other', 'another')
  }
  assert.deepEqual(
    lines.map(line => JSON.parse(line)).map(({ msg, at, repeated }) => [msg, at, repeated]),
    [
      ['same', 0, undefined],
      ['another', undefined, undefined],
      ['same', 1000, 2],
      ['same', 2500, undefined],
    ],
  )
})

test('the text of an error carries its causes once', () => {
  const check = (error: unknown, want: string) => assert.equal(errorText(error), want)
  check(new Error('a'), 'a')
  check(new Error('a', { cause: new Error('b', { cause: 'c' }) }), 'a: b: c')
  check(new Error('cannot x: ENOENT', { cause: new Error('ENOENT') }), 'cannot x: ENOENT')
  const loop = new Error('loop')
  loop.cause = loop
  check(loop, 'loop')
})
