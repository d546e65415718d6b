import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Connection } from '../../../foundation/model/connection.ts'
import { PortCalls } from './port-calls.ts'

function connection(server: boolean, localPort: number, peerPort: number): Connection {
  return Object.assign(new Connection(), { server, localPort, peerPort })
}

test('calls count at the port of the server, once where both sides are seen', () => {
  const ports = new PortCalls()
  assert.equal(ports.of(80), undefined)
  ports.called(connection(true, 80, 40_000))
  ports.called(connection(false, 40_000, 80), 3)
  ports.refused(80)
  assert.deepEqual(ports.of(80), { calls: 3, refused: 1 })
  ports.called(connection(true, 80, 40_000), 4)
  assert.equal(ports.of(80)?.calls, 5)
  assert.equal(ports.of(40_000), undefined)
})

test('of any number of ports those are known that were used last', () => {
  const ports = new PortCalls()
  for (let port = 1; port <= 10_000; port++) {
    ports.called(connection(true, port, 1))
    ports.called(connection(true, 1, port))
  }
  assert.deepEqual(ports.of(1)?.calls, 10_001)
  assert.equal(Array.from({ length: 10_000 }, (_, port) => ports.of(port + 1)).filter(Boolean).length, 256)
})
