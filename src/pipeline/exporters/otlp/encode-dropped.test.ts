import assert from 'node:assert/strict'
import test from 'node:test'
import { decodeRequest } from '../../../../test/helpers/otlp-proto.ts'
import { LogRecord } from '../../../foundation/model/log.ts'
import { resource } from '../../../foundation/model/resource.ts'
import { Span } from '../../../foundation/model/span.ts'
import { logEncoding } from './encode-log.ts'
import { traceEncoding } from './encode-trace.ts'
import { type Encoding, RequestBuilder } from './request.ts'

const host = resource({ 'host.name': 'h' })
const scope = { name: 'svc', version: '1' }

/** The count of dropped attributes as protobufjs reads it by the schema; undefined where the field is not there. */
function decoded<T extends Span | LogRecord>(encoding: Encoding<T>, item: T, dropped: number): unknown {
  const builder = new RequestBuilder(encoding)
  item.attributes.set('a', 1)
  item.droppedAttributes = dropped
  builder.add(host, scope, item)
  const text = JSON.stringify(decodeRequest(encoding.signal, builder.take()[0]!.body))
  assert.match(text, /"key":"a"/)
  const count = /"droppedAttributesCount":"?(\d+)/.exec(text)
  return count === null ? undefined : Number(count[1])
}

test('spans and log records say how many attributes they lost', () => {
  for (const dropped of [1, 127, 128, 100_000]) {
    assert.equal(decoded(traceEncoding, new Span(), dropped), dropped)
    assert.equal(decoded(logEncoding, new LogRecord(), dropped), dropped)
  }
})

test('where none was lost the field is left out', () => {
  assert.equal(decoded(traceEncoding, new Span(), 0), undefined)
  assert.equal(decoded(logEncoding, new LogRecord(), 0), undefined)
})
