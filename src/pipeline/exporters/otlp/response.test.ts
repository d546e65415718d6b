import assert from 'node:assert/strict'
import test from 'node:test'
import protobuf from 'protobufjs'
import { responseType } from '../../../../test/helpers/otlp-proto.ts'
import { signals } from '../../../foundation/model/signal.ts'
import { decodeReceipt, decodeStatus } from './response.ts'

const { root } = protobuf.parse(`
  syntax = "proto3";
  package google.rpc;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
`)

function encode(name: string, message: object): Uint8Array {
  const type = root.lookupType(`google.rpc.${name}`)
  return type.encode(type.fromObject(message)).finish()
}

const rejectedFields = {
  traces: 'rejectedSpans',
  metrics: 'rejectedDataPoints',
  logs: 'rejectedLogRecords',
  profiles: 'rejectedProfiles',
}

test('the answer of each signal tells what was rejected and why', () => {
  for (const signal of signals) {
    const type = responseType(signal)
    const check = (partialSuccess: object | undefined, rejected: number, message: string) =>
      assert.deepEqual(decodeReceipt(type.encode(type.fromObject({ partialSuccess })).finish()), {
        rejected,
        message,
      })
    check(undefined, 0, '')
    check({}, 0, '')
    check({ [rejectedFields[signal]]: 17, errorMessage: 'zu groß' }, 17, 'zu groß')
    check({ errorMessage: 'deprecated' }, 0, 'deprecated')
    check({ [rejectedFields[signal]]: -5 }, 0, '')
  }
})

test('fields that are not known are passed over', () => {
  const body = protobuf.Writer.create()
  body.uint32(0x12).string('new').uint32(0x1d).fixed32(1).uint32(0x21).fixed64(1).uint32(0x28).uint32(1)
  body.uint32(0x0a).bytes(protobuf.Writer.create().uint32(0x1a).string('new').uint32(0x08).uint32(3).finish())
  assert.deepEqual(decodeReceipt(body.finish()), { rejected: 3, message: '' })
})

test('an answer cut at any byte is read or refused with a RangeError', () => {
  const type = responseType('traces')
  const whole = type
    .encode(type.fromObject({ partialSuccess: { rejectedSpans: 300, errorMessage: 'no' } }))
    .finish()
  for (let length = 1; length < whole.length; length++)
    assert.throws(() => decodeReceipt(whole.subarray(0, length)), RangeError, `${length} bytes`)
})

test('a server cannot make the message longer than is shown', () => {
  const type = responseType('traces')
  const body = type
    .encode(type.fromObject({ partialSuccess: { errorMessage: 'x'.repeat(100_000) } }))
    .finish()
  assert.equal(decodeReceipt(body).message.length, 4096)
})

test('status details tell whether and when to try again', () => {
  const check = (details: object[], retryAfterMs: number | undefined) =>
    assert.deepEqual(decodeStatus(encode('Status', { code: 8, message: 'slow down', details })), {
      code: 8,
      message: 'slow down',
      retryAfterMs,
    })
  const retryInfo = (retryDelay: object | undefined) => ({
    typeUrl: 'type.googleapis.com/google.rpc.RetryInfo',
    value: encode('RetryInfo', { retryDelay }),
  })
  const other = { typeUrl: 'type.googleapis.com/google.rpc.DebugInfo', value: Buffer.from([0xff]) }
  check([], undefined)
  check([other], undefined)
  check([retryInfo(undefined)], 0)
  check([retryInfo({})], 0)
  check([retryInfo({ seconds: 7 })], 7000)
  check([other, retryInfo({ seconds: 1, nanos: 500_000_001 })], 1501)
  check([retryInfo({ seconds: 3 }), other], 3000)
  check([retryInfo({ seconds: -3, nanos: -1 })], 0)
})

test('a status that is no status is refused', () => {
  assert.deepEqual(decodeStatus(new Uint8Array(0)), { code: 0, message: '', retryAfterMs: undefined })
  assert.throws(() => decodeStatus(Buffer.from('<html>')), RangeError)
})
