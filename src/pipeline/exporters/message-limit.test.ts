import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messageLimit } from './message-limit.ts'

test("a receiver's limit is read from the words of every known server", () => {
  const check = (words: string, want: number | undefined) => assert.equal(messageLimit(words), want, words)
  check('grpc: received message larger than max (5242885 vs. 4194304)', 4194304)
  check('grpc: received message after decompression larger than max (5242885 vs. 4194304)', 4194304)
  check('grpc: received message after decompression larger than max 4194304', 4194304)
  check('Received message larger than max (5242885 vs 4194304)', 4194304)
  check('Received message that decompresses to a size larger than 4194304', 4194304)
  check('CLIENT: Received message larger than max (10 vs. 5)', 5)
  check('gRPC message exceeds maximum size 4194304: 5242885', 4194304)
  check('Compressed gRPC message exceeds maximum size 4194304: 4194305 bytes read', 4194304)
  check('Received message exceeds the maximum configured message size.', 0)
  check('Max message size exceeded', 0)
  check('Error, decoded message length too large: found 5242885 bytes, the limit is: 4194304 bytes', 4194304)
  check('Error decompressing: size limit, of 4194304 bytes, exceeded while decompressing message', 4194304)
  check('http: request body too large', 0)
  check('received message larger than max (1 vs. 99999999999999999999)', 0)
})

test('other complaints are none of the size', () => {
  for (const words of [
    '',
    'quota exceeded: 100 vs. 50 requests',
    'the answer is larger than 4194304 bytes',
    'rate limit is: 100',
    'memory usage exceeds the limit',
  ])
    assert.equal(messageLimit(words), undefined, words)
})
