import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kernelOperation } from '../../../../test/helpers/kernel-operation.ts'
import { createLogger } from '../../../foundation/lib/logger.ts'
import { type Operation, Segment } from '../../../foundation/model/stream.ts'
import { redis } from '../protocols/redis.ts'
import type { OperationSink } from './operation-pool.ts'
import { Streams } from './streams.ts'
import type { Tracer } from './tracer.ts'
import { TracingSink } from './tracing-sink.ts'

const get = Buffer.from('*2\r\n$3\r\nGET\r\n$1\r\nk\r\n')
const value = Buffer.from('$1\r\nv\r\n')

/** A sink that fails where requests are asked on one of its connections, or of one process. */
function failing({ connection = 0, pid = 0 }) {
  const seen = {
    asked: 0,
    ended: 0,
    framed: 0,
    missed: [] as unknown[],
    refused: [] as number[],
    lines: '',
  }
  const calls: OperationSink = {
    begin(operation) {
      if (operation.connection.id === connection) throw new TypeError('x is not iterable')
      seen.asked++
    },
    end: () => {
      seen.ended++
    },
    abandon: () => {},
    refuse: () => {},
    lost: () => {},
  }
  const tracer = {
    begin: () => {},
    end: (operation: Operation) => {
      if (operation.connection.pid === pid) throw new RangeError('out of range')
      seen.framed++
    },
  } as unknown as Tracer
  const streams = new Streams([redis.create({ route: (_, path) => path })], calls)
  const sink = new TracingSink({
    tracer,
    streams,
    drop: (reason, n) => seen.missed.push([reason, n]),
    counted: () => {},
    refuse: refused => seen.refused.push(refused),
    log: createLogger({ level: 'info', format: 'json', write: (line: string) => (seen.lines += line) }),
  })
  return { sink, streams, seen }
}

function segment(connection: number, bytes: Buffer, fromClient: boolean, position = 0): Segment {
  const place = {
    connection,
    bytes,
    end: bytes.length,
    length: bytes.length,
    received: !fromClient,
    position,
  }
  return Object.assign(new Segment(), {
    ...place,
    protocol: 'redis',
    pid: 1,
    sequence: 1,
    timeNs: 1e9 + position,
  })
}

test('a fault on the bytes of one connection costs that connection, and nobody else', () => {
  const { sink, streams, seen } = failing({ connection: 7 })
  for (const connection of [7, 8]) sink.segment(segment(connection, get, true))
  assert.deepEqual([seen.missed, seen.refused], [[['internal_error', 1]], [7]])
  assert.match(seen.lines, /cannot decode a request; please report this.*redis.*x is not iterable/)
  for (const connection of [8]) sink.segment(segment(connection, value, false))
  assert.deepEqual(
    [seen.asked, seen.ended, streams.inFlight],
    [1, 1, 1],
    'what the fault left is not known to have ended',
  )
})

test('a fault on one operation costs that operation', () => {
  const { sink, seen } = failing({ pid: 3 })
  for (const pid of [3, 4, 3]) sink.end(kernelOperation({ pid, protocol: 'http1' }))
  assert.equal(seen.framed, 1)
  assert.deepEqual(seen.missed, Array(2).fill(['internal_error', 1]))
  assert.equal(seen.lines.split('\n').length - 1, 1, 'it is said once')
})
