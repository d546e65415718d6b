import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { freePort, until } from '../../../test/helpers/program.ts'
import { connectionsOf, isListenedAt } from './explain-connections.ts'

/** A connection of this process with itself. */
async function pair(t: TestContext, host: string): Promise<{ port: number; client: Socket; server: Socket }> {
  const listener = createServer().listen(0, host)
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const client = connect(port, host)
  const [server] = (await once(listener, 'connection')) as [Socket]
  t.after(() => {
    client.destroy()
    server.destroy()
    listener.close()
  })
  return { port, client, server }
}

test('connections are told with what went over them, and how long ago', async t => {
  const { port, client, server } = await pair(t, '127.0.0.1')
  const at = () => connectionsOf('/proc', process.pid, port)
  const [silent] = at()
  assert.equal(at().length, 1)
  assert.equal(silent!.peerPort, client.localPort)
  assert.ok(silent!.bytes === 0 || silent!.bytes === undefined, `${silent!.bytes} bytes`)
  client.write('hello')
  await once(server, 'data')
  await until('the bytes are told', 20_000, () => at()[0]!.bytes !== 0)
  const [spoken] = at()
  assert.ok(spoken!.bytes === 5 || spoken!.bytes === undefined)
  assert.ok((spoken!.idleMs ?? 0) < 20_000)
  // The other end of it has another port of its own.
  const all = connectionsOf('/proc', process.pid)
  assert.ok(all.some(({ localPort, peerPort }) => localPort === client.localPort && peerPort === port))
})

test('those of IPv6 are told, and those of others are not', async t => {
  const { port } = await pair(t, '::1')
  assert.equal(connectionsOf('/proc', process.pid, port).length, 1)
  assert.deepEqual(connectionsOf('/proc', 1, port), [])
  assert.deepEqual(connectionsOf('/proc', 0x3fffff, port), [])
})

test('a port at which somebody listens is known by the kernel', async t => {
  const { port } = await pair(t, '127.0.0.1')
  assert.equal(isListenedAt('/proc', port), true)
  assert.equal(isListenedAt('/proc', await freePort()), false)
})
