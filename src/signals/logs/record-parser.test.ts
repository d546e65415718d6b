import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { heapGrowth } from '../../../test/helpers/heap.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { clearRecord, type ParseOptions, RecordParser } from './record-parser.ts'

const runs = soak ? 300_000 : 5000

const all = { json: true, severity: true, traceContext: true }
const trace = '0af7651916cd43dd8448eb211c80319c'
const span = 'b7ad6b7169203331'

function parsed(text: string, { timeUs = 0, ...options }: Partial<ParseOptions> & { timeUs?: number } = {}) {
  const record = new LogRecord()
  record.timeUs = timeUs
  record.attributes.add('log.file.path', '/x')
  new RecordParser({ ...all, ...options }).fill(record, text)
  const attributes = record.attributes.toObject()
  assert.equal(attributes['log.file.path'], '/x')
  delete attributes['log.file.path']
  return {
    body: record.body,
    severity: record.severity,
    severityText: record.severityText,
    timeUs: record.timeUs,
    trace: Buffer.from(record.traceId).toString('hex'),
    span: Buffer.from(record.spanId).toString('hex'),
    flags: record.flags,
    attributes,
    dropped: record.droppedAttributes,
  }
}

const json = (value: unknown, options = {}) => parsed(JSON.stringify(value), options)

test('fields of an object become what they are in a record, and attributes', () => {
  const record = json({
    level: 'warn',
    ts: '2026-01-02T03:04:05.123456Z',
    msg: 'order "placed"\n',
    trace_id: trace,
    span_id: span,
    trace_flags: '01',
    order: 17,
    share: 0.5,
    paid: true,
    voucher: null,
    'service.name': 'shop',
    http: { status: 200, request: { method: 'GET' } },
    tags: ['a', 'b'],
    mixed: [1, { a: 2 }],
    empty: {},
    none: [],
  })
  assert.deepEqual(record, {
    body: 'order "placed"\n',
    severity: 13,
    severityText: 'warn',
    timeUs: Date.UTC(2026, 0, 2, 3, 4, 5) * 1000 + 123_456,
    trace,
    span,
    flags: 1,
    attributes: {
      order: 17,
      share: 0.5,
      paid: true,
      'service.name': 'shop',
      'http.status': 200,
      'http.request.method': 'GET',
      tags: ['a', 'b'],
      mixed: '[1,{"a":2}]',
    },
    dropped: 0,
  })
})

test('levels are read as the loggers write them', () => {
  const check = (fields: object, severity: number, text: string) => {
    const record = json({ msg: 'x', ...fields })
    assert.deepEqual([record.severity, record.severityText, record.attributes], [severity, text, {}])
  }
  check({ level: 30 }, 9, '30')
  check({ level: '50' }, 17, '50')
  check({ log: { level: 'ERROR' } }, 17, 'ERROR')
  check({ '@l': 'Verbose' }, 1, 'Verbose')
  check({ levelname: 'CRITICAL' }, 21, 'CRITICAL')
  check({ PRIORITY: '3' }, 17, 'err')
  check({ priority: 6 }, 9, 'info')
  check({ severity_number: 18, severity_text: 'ERROR' }, 18, 'ERROR')
  check({ severityNumber: 13 }, 13, '')
})

test('fields that mean nothing here stay attributes', () => {
  const check = (fields: object, want: object = fields, options = {}) => {
    const record = json({ msg: 'x', ...fields }, options)
    assert.deepEqual([record.attributes, record.trace, record.dropped], [want, '0'.repeat(32), 0])
  }
  check({ level: 3 })
  check({ level: 'high', time: 'yesterday' })
  check({ span_id: span, trace_flags: 1 })
  check({ trace_id: '0'.repeat(32) })
  check({ 'dd.trace_id': '1234567890123456789' })
  check({ time: '2026-01-02T03:04:05Z' }, undefined, { timeUs: 5 })
  check({ level: 'info', trace_id: trace }, undefined, { severity: false, traceContext: false })
  check({ level: 'info', priority: 3 }, { priority: 3 })
  check({ message: 'better', event: 'worse' }, { msg: 'x', event: 'worse' })
})

test('whole numbers keep their digits', () => {
  assert.deepEqual(
    parsed('{"a":12345678901234567890,"b":9007199254740991,"c":1e400,"d":-0.5e-3}').attributes,
    {
      a: '12345678901234567890',
      b: 9007199254740991,
      c: '1e400',
      d: -0.0005,
    },
  )
})

test('an object without a message is its own body', () => {
  const text = ' {"a":1} '
  assert.equal(parsed(text).body, text)
  assert.deepEqual(parsed(text).attributes, { a: 1 })
})

test('what is no whole object is text, and leaves nothing behind', () => {
  for (const text of [
    '{',
    '{}x}',
    '{"a":1,}',
    '{"a" 1}',
    '{"a":01}',
    '{"a":1.}',
    '{"a":+1}',
    '{"a":tru}',
    '{"a":"\u0001"}',
    '{"a":"\\x"}',
    '{"level":"error","msg":"x" "}',
    '{"a":[1}',
    "{'a':1}",
    '{"a":NaN}',
    '[{"a":1}]',
    '"text"',
    '{"a":1}{"b":2}',
  ]) {
    const record = parsed(text)
    assert.deepEqual([record.body, record.attributes, record.dropped, record.timeUs], [text, {}, 0, 0], text)
  }
})

test('what a line may bring is bounded, and the rest is counted', () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`key${i}`, i]))
  const record = json({ ...many, msg: 'last' })
  assert.equal(Object.keys(record.attributes).length, 64)
  assert.equal(record.dropped, 36)
  assert.equal(record.body, 'last')
  const long = json({
    msg: 'x',
    a: `${'y'.repeat(32_767)}😀`,
    ['k'.repeat(257)]: 1,
    '': 2,
  })
  assert.equal(long.attributes.a, 'y'.repeat(32_767))
  const list = json({ msg: 'x', b: ['z'.repeat(20_000), 'z'.repeat(20_000)] })
  assert.deepEqual(list.attributes.b, ['z'.repeat(20_000), 'z'.repeat(12_768)])
  assert.equal(long.dropped, 2)
  const own = json({ msg: 'x', 'log.file.path': '/etc/shadow', log: { file: { path: '/etc/shadow' } } })
  assert.deepEqual([own.attributes, own.dropped], [{}, 2])
  const deep = parsed(`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`)
  assert.deepEqual(deep.attributes, { 'a.a.a.a.a.a.a.a': '{"a":1}' })
  const endless = `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
  assert.deepEqual(Object.values(parsed(endless).attributes), [`${'['.repeat(30_000)}${']'.repeat(2_768)}`])
  const tooLong = JSON.stringify({ msg: 'y'.repeat(70_000) })
  assert.equal(parsed(tooLong).body, tooLong)
})

test('a name or a short value that somebody keeps does not keep a long line in memory', async () => {
  const parser = new RecordParser(all)
  const record = new LogRecord()
  const kept: unknown[] = []
  let lines = 0
  const grownBytes = await heapGrowth(() => {
    for (const end = lines + 500; lines < end; lines++) {
      const key = `a rather long name ${lines} Grüße`
      const value = `a rather long value ${lines} 😀`
      clearRecord(record)
      parser.fill(record, JSON.stringify({ msg: 'x', [key]: value, filling: `${lines}`.repeat(9000) }))
      assert.equal(record.attributes.get(key), value)
      kept.push(record.attributes.keys[0], record.attributes.values[0])
    }
  })
  assert.equal(kept.length, 2 * lines)
  assert.ok(grownBytes < 4e6, `${grownBytes} bytes`)
})

test('the last of two fields of one name counts', () => {
  assert.deepEqual(parsed('{"msg":"x","a":1,"a":2}').attributes, { a: 2 })
})

test('a name out of the language is a name like others', () => {
  assert.deepEqual(Object.entries(parsed('{"msg":"x","__proto__":1,"constructor":"y"}').attributes), [
    ['constructor', 'y'],
  ])
  assert.equal(parsed('{"msg":"x","__proto__":1}').body, 'x')
})

test('colours of terminals are not in the body, and hide no level', () => {
  const check = (text: string, body: string, severity: number) => {
    const record = parsed(text)
    assert.deepEqual([record.body, record.severity], [body, severity])
  }
  check('\x1b[31mERROR\x1b[0m: it failed', 'ERROR: it failed', 17)
  check('\x1b[2m2026-01-01\x1b[0m \x1b[32m INFO\x1b[0m text', '2026-01-01  INFO text', 9)
  check('{"level":"info","msg":"\\u001b[1mbold\\u001b[0m"}', 'bold', 9)
  check('\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x1b(Btext', 'link text', 0)
  check('\x1b[31', '\x1b[31', 0)
  check('\x1b\x1b[1mx\x1b]never ended', '\x1bx\x1b]never ended', 0)
})

test('parts that are not wanted are not read', () => {
  assert.equal(parsed('{"msg":"x"}', { json: false }).body, '{"msg":"x"}')
  assert.equal(parsed('ERROR x', { severity: false }).severity, 0)
  assert.equal(parsed(`trace_id=${trace}`, { traceContext: false }).trace, '0'.repeat(32))
  assert.equal(parsed(`{"msg":"trace_id=${trace} text"}`).trace, trace)
})

test('a severity that was given gives way to the text only where it may', () => {
  const check = (text: string, textWins: boolean, want: number) => {
    const record = new LogRecord()
    record.severity = 10
    record.severityText = 'notice'
    new RecordParser(all).fill(record, text, textWins)
    assert.equal(record.severity, want)
    assert.equal(record.severityText === 'notice', want === 10)
  }
  check('ERROR x', true, 17)
  check('ERROR x', false, 10)
  check('x', true, 10)
  check('{"level":"error","msg":"x"}', false, 17)
})

test('every object that JSON.parse takes is taken, with the same values', () => {
  const key = fc
    .string({ minLength: 1, maxLength: 8 })
    .filter(name => !/^(?:message|msg|log|text|body|event|__proto__)/.test(name))
  const object = fc.dictionary(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }).map(name => `k${name}`),
    fc.jsonValue({ maxDepth: 3 }),
    { maxKeys: 8, noNullPrototype: true },
  )
  const parser = new RecordParser(all)
  const record = new LogRecord()
  fc.assert(
    fc.property(object, key, fc.string(), (fields, name, value) => {
      clearRecord(record)
      const whole = { ...fields, [`q${name}`]: value, msg: 'the body' }
      parser.fill(record, JSON.stringify(whole))
      assert.equal(record.body, 'the body')
      assert.equal(record.attributes.get(`q${name}`), value)
      for (const [each, wanted] of Object.entries(JSON.parse(JSON.stringify(fields))))
        if (typeof wanted === 'string' || typeof wanted === 'number' || typeof wanted === 'boolean')
          assert.equal(record.attributes.get(each), isLong(wanted) ? String(wanted) : wanted)
    }),
    { numRuns: runs },
  )
})

/** Whether a number is written in digits that a double does not keep. */
function isLong(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(String(value))
}

test('any text makes a record', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ':',
    ',',
    'msg',
    'level',
    '1',
    'true',
    'null',
    ' ',
    '\\u12',
    '-',
    'e',
    '\x1b[',
    '\ud800',
  )
  const text = fc.oneof(
    fc.array(token, { maxLength: 40 }).map(parts => `{${parts.join('')}}`),
    fc.string({ unit: 'binary' }),
  )
  const parser = new RecordParser(all)
  const record = new LogRecord()
  fc.assert(
    fc.property(text, each => {
      clearRecord(record)
      parser.fill(record, each)
      let isObject = false
      try {
        const value = JSON.parse(each)
        isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
      } catch {
        // Text.
      }
      if (!isObject && !each.includes('[') && !each.includes('{{')) assert.equal(record.attributes.size, 0)
    }),
    { numRuns: runs },
  )
})
