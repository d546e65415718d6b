import assert from 'node:assert/strict'
import { test } from 'node:test'
import { status } from '@grpc/grpc-js'
import { decodeStatusMessage, GrpcStatus, statusName, statusOfHttp, statusOfReset } from './grpc-status.ts'

test('codes and names are those of the gRPC library', () => {
  for (const [name, code] of Object.entries(GrpcStatus)) {
    assert.equal(status[name.toUpperCase() as keyof typeof status], code)
    assert.equal(statusName(code), name)
  }
  assert.equal(Object.keys(GrpcStatus).length, 17)
  assert.equal(statusName(17), 'unknown')
})

test('an HTTP answer maps as the gRPC table has it', () => {
  const check = (http: number, want: string) => assert.equal(statusName(statusOfHttp(http)), want)
  check(400, 'internal')
  check(401, 'unauthenticated')
  check(403, 'permission_denied')
  check(404, 'unimplemented')
  check(429, 'unavailable')
  check(502, 'unavailable')
  check(503, 'unavailable')
  check(504, 'unavailable')
  check(413, 'unknown')
  check(500, 'unknown')
  check(302, 'unknown')
})

test('a reset maps as the gRPC table has it, but one that says nothing against the request may be sent again', () => {
  const names = Array.from({ length: 15 }, (_, code) => statusName(statusOfReset(code)))
  assert.deepEqual(names, [
    'unavailable', // NO_ERROR
    'internal', // PROTOCOL_ERROR
    'unavailable', // INTERNAL_ERROR
    'internal', // FLOW_CONTROL_ERROR
    'internal', // SETTINGS_TIMEOUT
    'unknown', // STREAM_CLOSED
    'internal', // FRAME_SIZE_ERROR
    'unavailable', // REFUSED_STREAM
    'cancelled', // CANCEL
    'internal', // COMPRESSION_ERROR
    'internal', // CONNECT_ERROR
    'unavailable', // ENHANCE_YOUR_CALM
    'permission_denied', // INADEQUATE_SECURITY
    'unknown', // HTTP_1_1_REQUIRED
    'unknown', // none that RFC 9113 names
  ])
})

test('a status message is decoded, and left alone where it is badly encoded', () => {
  const check = (text: string, want: string) => assert.equal(decodeStatusMessage(text), want)
  check('plain text', 'plain text')
  check('%C3%BC 100%25', 'ü 100%')
  check('50% off', '50% off')
  check('%FF', '%FF')
})
