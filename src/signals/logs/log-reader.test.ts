import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { SearchPattern } from '../../foundation/lib/search-pattern.ts'
import { type LogForm, type LogReaderOptions, logReader } from './log-reader.ts'
import { WaitingText } from './waiting-text.ts'

const runs = soak ? 100_000 : 2000
const fuzzRuns = soak ? 1_000_000 : 30_000

const time = '2026-01-02T03:04:05.123456789Z'
const timeUs = Date.UTC(2026, 0, 2, 3, 4, 5) * 1000 + 123_456

interface Seen {
  readonly body: string
  readonly stream: unknown
  readonly timeUs: number
  readonly severity: number
}

/** A reader whose lines are given as texts, at places as in a file. */
function reading(form: LogForm, options: Partial<LogReaderOptions> = {}) {
  const seen: Seen[] = []
  let nowMs = 1_000_000
  let place = 0
  const reader = logReader(form, {
    path: '/var/log/app.log',
    parse: { json: true, severity: true, traceContext: true },
    maxBytes: 64 * 1024,
    owner: 'user 0',
    waiting: new WaitingText(1024 * 1024),
    now: () => nowMs,
    emit: record => {
      assert.equal(record.attributes.get('log.file.path'), '/var/log/app.log')
      assert.equal(record.attributes.get('log.file.name'), 'app.log')
      assert.equal(record.observedUs, nowMs * 1000)
      const { body, severity } = record
      seen.push({ body, stream: record.attributes.get('log.iostream'), timeUs: record.timeUs, severity })
    },
    ...options,
  })
  return {
    reader,
    seen,
    bodies: () => seen.splice(0).map(({ body }) => body),
    wait(ms: number) {
      nowMs += ms
      reader.flush(false)
    },
    /** Returns where the line began. */
    line(content: string | Buffer): number {
      const bytes = Buffer.from(content)
      const around = Buffer.concat([Buffer.from('before\n'), bytes, Buffer.from('\nbehind"}')])
      const begin = place
      reader.line(around, 7, 7 + bytes.length, begin)
      around.fill(0x21)
      place += bytes.length + 1
      return begin
    },
  }
}

const docker = (log: string, stream = 'stdout') => JSON.stringify({ log, stream, time })
const cri = (text: string, tag = 'F', stream = 'stdout') => `${time} ${stream} ${tag} ${text}`

test('plain lines are records without a time of their own', () => {
  const { line, seen, reader } = reading('plain')
  line('first\r')
  line('')
  line(' \t')
  line('ERROR Grüße')
  line(Buffer.from('\xff\xfex', 'latin1'))
  line(Buffer.from('\0\0\0after the hole', 'latin1'))
  line('\ufeffmarked')
  assert.deepEqual(
    seen.map(({ body }) => body),
    ['first', 'ERROR Grüße', '\ufffdx', 'after the hole', 'marked'],
  )
  assert.deepEqual(seen[1], { body: 'ERROR Grüße', stream: undefined, timeUs: 0, severity: 17 })
  assert.equal(reader.heldFrom, -1)
  assert.equal(reader.odd, 0)
})

test('lines of Docker tell text, stream and time', () => {
  const { line, seen, reader } = reading('docker')
  const check = (content: string, body: string, stream = 'stdout', us = timeUs) => {
    line(content)
    assert.deepEqual(
      seen.splice(0),
      [{ body, stream: stream || undefined, timeUs: us, severity: 0 }],
      content,
    )
  }
  check(docker('text\n'), 'text')
  check(docker('text\r\n', 'stderr'), 'text', 'stderr')
  check(docker('a "quoted" \\ \t/ Grüße \u2028 😀\n'), 'a "quoted" \\ \t/ Grüße \u2028 😀')
  check(docker('ends with \\\\\n'), 'ends with \\\\')
  check(
    `{"log":"\\u003ca\\u003e \\ud83d\\ude00 \\u00fc \\/ \\ud800 x\\n","stream":"stdout","time":"${time}"}`,
    '<a> 😀 ü / \ufffd x',
  )
  check(`{"log":"x\\n","stream":"stdout","attrs":{"a":"}\\"{","b":"c"},"time":"${time}"}`, 'x')
  check('{"log":"x\\n","stream":"stdout","time":"2026-01-02T05:04:05.123456+02:00"}', 'x')
  assert.equal(reader.odd, 0)
  // Other programs write other orders.
  check(`{"time":"${time}","stream":"stderr","log":"x\\n"}`, 'x', 'stderr')
  check('{ "log": "x\\n" }', 'x', '', 0)
  assert.equal(reader.odd, 0)
  check('{"log":"x\\n","str', '{"log":"x\\n","str', '', 0)
  check('text', 'text', '', 0)
  assert.equal(reader.odd, 2)
  line(docker('\n'))
  line('')
  assert.deepEqual(seen, [])
})

test('JSON inside of a line of Docker is read', () => {
  const { line, seen } = reading('docker')
  line(docker('{"level":"error","msg":"it \\"failed\\"","time":"2020-01-01T00:00:00Z"}\n'))
  assert.deepEqual(seen, [{ body: 'it "failed"', stream: 'stdout', timeUs, severity: 17 }])
})

test('parts of Docker are joined within their stream', () => {
  const { line, bodies, reader } = reading('docker')
  const first = line(docker('out 1 '))
  assert.equal(reader.heldFrom, first)
  const second = line(docker('err 1 ', 'stderr'))
  line(docker('out 2 '))
  assert.equal(reader.heldFrom, first)
  line(docker('out 3\n'))
  assert.equal(reader.heldFrom, second)
  line(docker('err 2\n', 'stderr'))
  assert.equal(reader.heldFrom, -1)
  assert.deepEqual(bodies(), ['out 1 out 2 out 3', 'err 1 err 2'])
})

test('lines of CRI tell text, stream and time, and parts are joined', () => {
  const { line, seen, bodies, reader } = reading('cri')
  line(cri('text with  blanks '))
  assert.deepEqual(seen.splice(0), [{ body: 'text with  blanks ', stream: 'stdout', timeUs, severity: 0 }])
  line(`2026-01-02T05:04:05.123456+02:00 stderr F:tag WARN x`)
  assert.deepEqual(seen.splice(0), [{ body: 'WARN x', stream: 'stderr', timeUs, severity: 13 }])
  line(`${time} stdout F`)
  line(cri(''))
  assert.deepEqual(bodies(), [])
  // A runtime cuts characters in two.
  const smile = Buffer.from('😀')
  const begin = line(Buffer.concat([Buffer.from(cri('a', 'P')), smile.subarray(0, 2)]))
  line(cri('of stderr', 'F', 'stderr'))
  assert.equal(reader.heldFrom, begin)
  line(Buffer.concat([Buffer.from(cri('')), smile.subarray(2), Buffer.from('b')]))
  assert.deepEqual(bodies(), ['of stderr', 'a😀b'])
  assert.equal(reader.odd, 0)
  for (const odd of [
    'text',
    `${time} stdin F x`,
    `${time} stdout X x`,
    `${time} stdout Fx`,
    'x stdout F x',
    `${time} stdout`,
  ]) {
    line(odd)
    assert.deepEqual(bodies(), [odd])
  }
  assert.equal(reader.odd, 6)
})

test('a part that waits for nothing is handed on after a while, and at the end', () => {
  const { line, bodies, wait, reader } = reading('docker')
  line(docker('prompt: '))
  wait(4000)
  assert.deepEqual(bodies(), [])
  wait(1500)
  assert.deepEqual(bodies(), ['prompt: '])
  assert.equal(reader.heldFrom, -1)
  line(docker('last'))
  reader.flush(true)
  assert.deepEqual(bodies(), ['last'])
  line(docker('the clock is set back'))
  wait(-60_000)
  assert.deepEqual(bodies(), ['the clock is set back'])
})

test('what is too long is handed on in pieces, between two characters', () => {
  const parts = reading('docker', { maxBytes: 10 })
  const begin = parts.line(docker('12345678'))
  assert.equal(parts.reader.heldFrom, begin)
  const next = parts.line(docker('9ü😀'))
  assert.deepEqual(parts.bodies(), ['123456789'])
  assert.equal(parts.reader.heldFrom, next)
  parts.line(docker('abcdefghijklmnopqrstuvwxyz\n'))
  assert.deepEqual(parts.bodies(), ['ü😀abcd', 'efghijklmn', 'opqrstuvwx', 'yz'])
  assert.equal(parts.reader.heldFrom, -1)
  const whole = reading('plain', { maxBytes: 10 })
  whole.line('123456789üabc')
  assert.deepEqual(whole.bodies(), ['123456789', 'üabc'])
})

const marks = (source: string, more = {}) => ({
  pattern: new SearchPattern(source),
  negate: false,
  match: 'after' as const,
  maxLines: 500,
  timeoutMs: 5000,
  ...more,
})

test('marked lines belong to the record before them', () => {
  const { line, bodies, reader, wait } = reading('plain', { multiline: marks('^\\s|^Caused by:') })
  line('java.lang.Error: x')
  line('    at a')
  const begin = line('Caused by: y')
  line('')
  assert.deepEqual(bodies(), ['java.lang.Error: x\n    at a\nCaused by: y'])
  assert.notEqual(reader.heldFrom, begin)
  line(' more')
  const held = line('next')
  assert.deepEqual(bodies(), ['\n more'])
  assert.equal(reader.heldFrom, held)
  wait(4999)
  assert.deepEqual(bodies(), [])
  wait(1)
  assert.deepEqual(bodies(), ['next'])
  assert.equal(reader.heldFrom, -1)
})

test('the other marks: lines that do not match, and lines before', () => {
  const negated = reading('plain', { multiline: marks('^\\d{4}-', { negate: true }) })
  for (const each of ['2026-01 a', 'b', '', 'c', '2026-02 d']) negated.line(each)
  negated.reader.flush(true)
  assert.deepEqual(negated.bodies(), ['2026-01 a\nb\n\nc', '2026-02 d'])
  const before = reading('plain', { multiline: marks('\\\\$', { match: 'before' }) })
  for (const each of ['a\\', 'b\\', 'c', 'd', 'e\\']) before.line(each)
  assert.deepEqual(before.bodies(), ['a\\\nb\\\nc', 'd'])
  before.reader.flush(true)
  assert.deepEqual(before.bodies(), ['e\\'])
})

test('records of several lines are kept apart by stream, after their parts were joined', () => {
  const { line, seen, reader } = reading('cri', { multiline: marks('^ ') })
  const first = line(cri('out 1', 'P'))
  const second = line(cri('err 1', 'F', 'stderr'))
  line(cri(' and more'))
  line(cri(' err 2', 'F', 'stderr'))
  line(cri(' out 2'))
  assert.equal(reader.heldFrom, first)
  line(cri('out 3'))
  assert.equal(reader.heldFrom, second)
  reader.flush(true)
  assert.deepEqual(
    seen.map(({ body, stream }) => [body, stream]),
    [
      ['out 1 and more\n out 2', 'stdout'],
      ['out 3', 'stdout'],
      ['err 1\n err 2', 'stderr'],
    ],
  )
})

test('a record of several lines is bounded in lines and bytes, and nothing of it is lost', () => {
  const { line, bodies, reader } = reading('plain', { multiline: marks('^ ', { maxLines: 3 }), maxBytes: 20 })
  for (const each of ['a', ' 1', ' 2', ' 3', ' 4']) line(each)
  reader.flush(true)
  assert.deepEqual(bodies(), ['a\n 1\n 2', ' 3\n 4'])
  for (const each of ['0123456789', ' 123456789', ` ${'x'.repeat(29)}`]) line(each)
  reader.flush(true)
  assert.deepEqual(bodies(), ['0123456789', ' 123456789', ` ${'x'.repeat(19)}`, 'x'.repeat(10)])
})

test('a pattern that could take long is not let to', () => {
  const { line, bodies, reader } = reading('plain', { multiline: marks('(a+)+b$'), maxBytes: 1 << 20 })
  line('a'.repeat(200_000))
  reader.flush(true)
  assert.equal(bodies()[0]!.length, 200_000)
})

test('whatever parts a text is cut into, it comes whole, and nothing is committed before it was handed on', () => {
  const cut = fc.record({
    text: fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter(text => /[^\s\p{C}]/u.test(text)),
    cuts: fc.array(fc.nat(40), { maxLength: 4 }),
    isError: fc.boolean(),
  })
  fc.assert(
    fc.property(
      fc.constantFrom<LogForm>('docker', 'cri'),
      fc.array(cut, { minLength: 1, maxLength: 6 }),
      (form, texts) => {
        const { line, seen, reader } = reading(form, {
          parse: { json: false, severity: false, traceContext: false },
        })
        const wanted: Record<string, string[]> = { stdout: [], stderr: [] }
        // The parts of both streams in turn, as a runtime may write them.
        const queues: Record<string, { bytes: Buffer; isLast: boolean; text: number }[]> = {
          stdout: [],
          stderr: [],
        }
        for (const [number, { text, cuts, isError }] of texts.entries()) {
          const stream = isError ? 'stderr' : 'stdout'
          const clean = text.replaceAll(/[\p{C}\s]/gu, '_')
          wanted[stream]!.push(clean)
          // Docker has no bytes that are no text: it cuts between characters here.
          const bytes = form === 'cri' ? Buffer.from(clean) : [...clean]
          const places = [...new Set(cuts.map(at => at % bytes.length))]
            .filter(at => at > 0)
            .sort((a, b) => a - b)
          const ends = [...places, bytes.length]
          for (const [i, end] of ends.entries()) {
            const part = bytes.slice(i === 0 ? 0 : ends[i - 1]!, end)
            queues[stream]!.push({
              bytes: Buffer.isBuffer(part) ? part : Buffer.from((part as string[]).join('')),
              isLast: i === ends.length - 1,
              text: number,
            })
          }
        }
        const begins: Record<string, { begin: number; stream: string }> = {}
        for (let turn = 0; queues.stdout!.length + queues.stderr!.length > 0; turn++) {
          const stream = turn % 2 === 0 ? 'stdout' : 'stderr'
          const part = queues[stream]!.shift()
          if (part === undefined) continue
          const begin = line(
            form === 'cri'
              ? Buffer.concat([Buffer.from(cri('', part.isLast ? 'F' : 'P', stream)), part.bytes])
              : docker(part.bytes.toString() + (part.isLast ? '\n' : ''), stream),
          )
          begins[part.text] ??= { begin, stream }
          if (part.isLast) delete begins[part.text]
          const open = Object.values(begins).map(each => each.begin)
          assert.equal(reader.heldFrom, open.length > 0 ? Math.min(...open) : -1)
        }
        for (const stream of ['stdout', 'stderr'])
          assert.deepEqual(
            seen.filter(record => record.stream === stream).map(({ body }) => body),
            wanted[stream],
          )
      },
    ),
    { numRuns: runs },
  )
})

test('with records of several lines too, what is held begins at the first line that was not handed on', () => {
  const lines = fc.array(fc.record({ isMarked: fc.boolean(), isPart: fc.boolean(), isError: fc.boolean() }), {
    maxLength: 30,
  })
  const options = fc.record({
    match: fc.constantFrom('after' as const, 'before' as const),
    maxLines: fc.integer({ min: 1, max: 4 }),
  })
  fc.assert(
    fc.property(lines, options, (each, more) => {
      const seen = new Set<number>()
      const { line, reader, seen: records } = reading('cri', { multiline: marks('^ ', more) })
      const begins: number[] = []
      const take = () => {
        for (const { body } of records.splice(0))
          for (const [, number] of body.matchAll(/<(\d+)>/g)) seen.add(Number(number))
        const held = begins.find((_, number) => !seen.has(number)) ?? -1
        assert.equal(reader.heldFrom, held)
      }
      for (const [number, { isMarked, isPart, isError }] of each.entries()) {
        begins.push(
          line(cri(`${isMarked ? ' ' : ''}<${number}>`, isPart ? 'P' : 'F', isError ? 'stderr' : 'stdout')),
        )
        take()
      }
      reader.flush(true)
      take()
      assert.equal(seen.size, each.length)
    }),
    { numRuns: runs },
  )
})

test('any bytes make records, and nothing waits after the end', () => {
  const token = fc.constantFrom(
    '{"log":"',
    '\\n"',
    ',"stream":"stdout"',
    ',"attrs":{',
    '}',
    `,"time":"${time}"}`,
    '\\',
    '\\u12',
    '\\ud83d',
    `${time} stdout `,
    'P ',
    'F ',
    'F',
    ':',
    '"',
    'x',
    '\xff',
    '\0',
    ' ',
  )
  const bytes = fc.oneof(
    fc.array(token, { maxLength: 12 }).map(parts => Buffer.from(parts.join(''), 'latin1')),
    fc.uint8Array({ maxLength: 80 }).map(Buffer.from),
  )
  for (const form of ['plain', 'docker', 'cri'] as const) {
    const { line, reader, seen } = reading(form, { multiline: marks('^ ', { maxLines: 3 }), maxBytes: 32 })
    fc.assert(
      fc.property(bytes, each => {
        line(each)
        for (const { body } of seen.splice(0)) assert.ok(Buffer.byteLength(body) <= 3 * 32)
      }),
      { numRuns: Math.ceil(fuzzRuns / 3) },
    )
    reader.flush(true)
    assert.equal(reader.heldFrom, -1)
  }
})
