import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { TraceContext } from './stream.ts'
import { readTraceHeaders } from './trace-headers.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const parentId = '05e3ac9a4f6e3b90'
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

function read(...lines: string[]): TraceContext {
  const bytes = Buffer.from(
    `..GET /a HTTP/1.1\r\nHost: b\r\n${lines.join('\r\n')}\r\n\r\ntraceparent: x`,
    'latin1',
  )
  const context = new TraceContext()
  context.flags = 7
  context.state = 'left=over'
  readTraceHeaders(bytes, 2, bytes.length, context)
  return context
}

/** `want`: "<trace id> <span id> <flags>", or '' for no context. */
function check(lines: readonly string[], want: string, state = ''): void {
  const context = read(...lines)
  const seen = context.flags < 0 ? '' : `${hex(context.traceId)} ${hex(context.spanId)} ${context.flags}`
  assert.equal(seen, want, lines.join(' | '))
  assert.equal(context.state, state, lines.join(' | '))
}

const w3c = `traceparent: 00-${traceId}-${spanId}-01`
const found = `${traceId} ${spanId} 1`

test('a traceparent is read whatever the case of its name and the blanks around its value', () => {
  check([w3c], found)
  check([`TraceParent:  00-${traceId}-${spanId}-00 \t`], `${traceId} ${spanId} 0`)
  check([`traceparent: 00-${traceId}-${spanId}`], '')
  check([], '')
  check([`x-traceparent: 00-${traceId}-${spanId}-01`], '')
})

test('of two traceparents the first counts', () => {
  check([w3c, `traceparent: 00-${'1'.repeat(32)}-${'2'.repeat(16)}-00`], found)
})

test('a tracestate is passed on as it came where it is well-formed', () => {
  check(
    [w3c, 'tracestate: rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'],
    found,
    'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
  )
  check([w3c, 'tracestate: a@vendor=x y , b=2'], found, 'a@vendor=x y , b=2')
  check([w3c, 'tracestate: a=1', 'tracestate: b=2'], found, 'a=1,b=2')
  check(['tracestate: a=1', w3c], found, 'a=1')
  check([w3c, 'tracestate: A=1'], found)
  check([w3c, 'tracestate: a'], found)
  check([w3c, 'tracestate: a='], found)
  check([w3c, 'tracestate: a=1=2'], found)
  check([w3c, 'tracestate: a=\x7f'], found)
  check([w3c, 'tracestate: ,'], found)
  check([w3c, `tracestate: ${Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(',')}`], found)
  check(['tracestate: a=1'], '')
})

test('a tracestate beyond 512 bytes loses its last members', () => {
  const members = Array.from({ length: 30 }, (_, i) => `key${i}=${'v'.repeat(20)}`)
  const { state } = read(w3c, `tracestate: ${members.join(',')}`)
  assert.ok(state.length <= 512 && state.length > 480)
  assert.ok(members.join(',').startsWith(`${state},`))
  const several = read(w3c, ...members.map(member => `tracestate: ${member}`))
  assert.equal(several.state, state)
})

test('a b3 header is read in all its lengths', () => {
  check([`b3: ${traceId}-${spanId}`], found)
  check([`b3: ${traceId}-${spanId}-1`], found)
  check([`B3: ${traceId}-${spanId}-d`], found)
  check([`b3: ${traceId}-${spanId}-0`], `${traceId} ${spanId} 0`)
  check([`b3: ${traceId}-${spanId}-1-${parentId}`], found)
  check([`b3: ${traceId.slice(16)}-${spanId}-1`], `${'0'.repeat(16)}${traceId.slice(16)} ${spanId} 1`)
})

test('a b3 header that is none, or only a sampling state, is no context', () => {
  check(['b3: 0'], '')
  check(['b3: 1'], '')
  check([`b3: ${traceId}`], '')
  check([`b3: ${traceId}-${spanId}-`], '')
  check([`b3: ${traceId}-${spanId}-2`], '')
  check([`b3: ${traceId}-${spanId}-1-`], '')
  check([`b3: ${traceId}-${spanId}-1-${parentId}0`], '')
  check([`b3: ${traceId}-${spanId}-1-${parentId.slice(1)}g`], '')
  check([`b3: ${'0'.repeat(32)}-${spanId}-1`], '')
  check([`b3: ${traceId}-${'0'.repeat(16)}-1`], '')
  check([`b3: ${traceId.slice(1)}-${spanId}-1`], '')
  check([`b3: ${traceId.slice(1)}g-${spanId}-1`], '')
})

test('the B3 headers are read together', () => {
  const ids = [`X-B3-TraceId: ${traceId}`, `X-B3-SpanId: ${spanId}`]
  check(ids, found)
  check([...ids, 'X-B3-Sampled: 1', `X-B3-ParentSpanId: ${parentId}`], found)
  check([...ids, 'X-B3-Sampled: 0'], `${traceId} ${spanId} 0`)
  check([...ids, 'X-B3-Sampled: false'], `${traceId} ${spanId} 0`)
  check([...ids, 'X-B3-Sampled: 0', 'X-B3-Flags: 1'], found)
  check([ids[0]!], '')
  check([ids[1]!], '')
  check([ids[0]!, `X-B3-SpanId: ${spanId}0`], '')
  check(['X-B3-Sampled: 1'], '')
})

test('W3C wins over B3, and a single b3 over the several', () => {
  const other = '1'.repeat(32)
  check([`b3: ${other}-${spanId}`, w3c], found)
  check([`b3: ${traceId}-${spanId}`, 'traceparent: 00-x'], found)
  check([`X-B3-TraceId: ${other}`, `X-B3-SpanId: ${spanId}`, `b3: ${traceId}-${spanId}`], found)
})

test('a head that was cut off gives what stands in its whole lines', () => {
  const whole = Buffer.from(`GET / HTTP/1.1\r\n${w3c}\r\nb3: ${'1'.repeat(32)}-${spanId}\r\n\r\n`)
  const context = new TraceContext()
  const line = whole.indexOf('\n', 20)
  for (let end = 0; end <= whole.length; end++) {
    readTraceHeaders(whole, 0, end, context)
    assert.equal(context.flags, end > line ? 1 : -1, `${end}`)
  }
})

test('any bytes are read without a fault', () => {
  const word = fc.constantFrom(
    'traceparent',
    'tracestate',
    'b3',
    'x-b3-traceid',
    'x-b3-spanid',
    ':',
    ' ',
    '\r\n',
    ',',
    '=',
    traceId,
    spanId,
    '-',
    '0',
  )
  const runs = soak ? 200_000 : 5_000
  const context = new TraceContext()
  fc.assert(
    fc.property(fc.array(fc.oneof(word, fc.string({ unit: 'binary' })), { maxLength: 40 }), parts => {
      const bytes = Buffer.from(parts.join(''), 'latin1')
      readTraceHeaders(bytes, 0, bytes.length, context)
      assert.ok(context.flags >= -1 && context.flags <= 3 && context.state.length <= 512)
    }),
    { numRuns: runs },
  )
})
