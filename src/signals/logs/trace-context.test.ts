import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { LogRecord } from '../../foundation/model/log.ts'
import { findTraceContext } from './trace-context.ts'

const runs = soak ? 1_000_000 : 20_000

const trace = '0af7651916cd43dd8448eb211c80319c'
const span = 'b7ad6b7169203331'

function found(line: string): string {
  const record = new LogRecord()
  const isFound = findTraceContext(record, line)
  const ids = [record.traceId, record.spanId].map(id => Buffer.from(id).toString('hex')).join(' ')
  assert.equal(isFound, !ids.startsWith('0'.repeat(32)), line)
  return isFound ? `${ids} ${record.flags}` : ''
}
const check = (line: string, want: string) => assert.equal(found(line), want, line)
const none = '0'.repeat(16)

test('ids are found behind their names', () => {
  const both = `${trace} ${span} 0`
  check(`trace_id=${trace} span_id=${span} text`, both)
  check(`text traceId: "${trace}", spanId: "${span}"`, both)
  check(`[trace.id=${trace},span.id=${span}] text`, both)
  check(`TraceId:${trace}, SpanId:${span}`, both)
  check(`TRACE_ID=${trace} SPAN_ID=${span}`, both)
  check(`{"trace_id":"${trace}","span_id":"${span}" cut`, both)
  check(`{\\"trace_id\\":\\"${trace}\\",\\"span_id\\":\\"${span}\\"`, both)
  check(`otel.trace_id = ${trace.toUpperCase()} span-id = ${span}`, both)
  check(`span_id=${span} trace_id=${trace}`, both)
  check(`trace_id=${trace} parent_span_id=${span}`, `${trace} ${none} 0`)
  check(`trace_id=none traceID=${trace}`, `${trace} ${none} 0`)
  check(`traceparent=00-${trace}-${span}-01`, `${trace} ${span} 1`)
  check(`'traceparent': '00-${trace}-${span}-00'`, `${trace} ${span} 0`)
})

test('digits without a name, and names without an id, are none', () => {
  check(`${trace} ${span}`, '')
  check(`span_id=${span}`, '')
  check(`commit=${trace}`, '')
  check(`trace ${trace}`, '')
  check(`trace_id=${trace}0`, '')
  check(`trace_id=${trace.slice(1)}`, '')
  check(`trace_id=${'0'.repeat(32)}`, '')
  check(`backtraceid=${trace}`, '')
  check(`parent_trace_id=${trace}`, '')
  check(`traceparent=00-${trace}-${'0'.repeat(16)}-01`, '')
  check(`traceparent=00-${trace}-${span}`, '')
  check('stacktrace: at main', '')
  check('', '')
})

test('any line is looked through in linear time, and nothing is found that is not there', () => {
  const part = fc.constantFrom(
    'trace',
    'Trace',
    'TRACE',
    '_id',
    'Id',
    '=',
    ': ',
    '"',
    '\\',
    trace,
    span,
    '00-',
    '-',
    '01',
    'parent',
    ' ',
    'é',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), parts => {
      const line = parts.join('')
      const ids = found(line)
      return (
        ids === '' ||
        ids.startsWith(trace) ||
        (ids.startsWith('0'.repeat(16)) === false && line.includes(span))
      )
    }),
    { numRuns: runs },
  )
  check('trace_id='.repeat(200_000), '')
})
