import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kernelOperation } from '../../../../test/helpers/kernel-operation.ts'
import { StreamSession } from '../../../../test/helpers/stream-session.ts'
import type { Call } from '../../../foundation/model/call.ts'
import type { Protocol, ProtocolUnit } from '../../../foundation/model/protocol.ts'
import { SpanKind } from '../../../foundation/model/span.ts'
import { dbClient } from './durations.ts'
import { memcached } from './memcached.ts'
import { mysql } from './mysql.ts'
import { postgres } from './postgres.ts'
import { redis } from './redis.ts'

function counted(protocol: Protocol, port: number): Call {
  const operation = kernelOperation({ protocol: protocol.name, peerAddress: '10.0.0.2', peerPort: port })
  assert.equal(protocol.fillCall?.(operation), true)
  return operation.call
}

const routes = { route: () => '' }
const units: readonly (readonly [ProtocolUnit, system: string, signalType: string])[] = [
  [postgres, 'postgresql', 'sql'],
  [mysql, 'mysql', 'sql'],
  [redis, 'redis', 'redis'],
  [memcached, 'memcached', 'memcached'],
]

for (const [unit, system, signalType] of units)
  test(`${unit.name}: of what the kernel only counted, the server is told`, () => {
    const call = counted(unit.create(routes), 4000)
    assert.equal(call.kind, SpanKind.client)
    assert.equal(call.signalType, signalType)
    assert.equal(call.duration, dbClient)
    assert.deepEqual(call.dimensions.toObject(), {
      'db.system.name': system,
      'server.address': '10.0.0.2',
      'server.port': 4000,
    })
  })

test('a server that called itself MariaDB is counted as such', () => {
  const protocol = mysql.create(routes)
  const version = '\x0a5.5.5-10.11.19-MariaDB\0'
  const payload = `${version}${'\x01'.repeat(8)}challeng\0\xff\xff\x2d\x02\0\xff\xff`
  new StreamSession({ ...mysql, create: () => protocol }).serverSays(
    `${String.fromCharCode(payload.length)}\0\0\0${payload}`,
  )
  assert.equal(counted(protocol, 4000).dimensions.get('db.system.name'), 'mariadb')
  assert.equal(counted(protocol, 4001).dimensions.get('db.system.name'), 'mysql')
})
