import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { freePort, until } from '../../../test/helpers/program.ts'
import { isListenedAt } from '../../identity/entities/listening-ports.ts'
import { connectionsOf } from './explain-connections.ts'

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
  const [silent, ...others] = await at()
  assert.equal(others.length, 0)
  assert.equal(silent!.peerPort, client.localPort)
  assert.ok(silent!.bytes === 0 || silent!.bytes === undefined, `${silent!.bytes} bytes`)
  client.write('hello')
  await once(server, 'data')
  await until('the bytes are told', 20_000, async () => (await at())[0]!.bytes !== 0)
  const [spoken] = await at()
  assert.ok(spoken!.bytes === 5 || spoken!.bytes === undefined)
  assert.ok((spoken!.idleMs ?? 0) < 20_000)
  // The other end of it has another port of its own.
  const all = await connectionsOf('/proc', process.pid)
  assert.ok(all.some(({ localPort, peerPort }) => localPort === client.localPort && peerPort === port))
})

test('those of IPv6 are told, and those of others are not', async t => {
  const { port } = await pair(t, '::1')
  assert.equal((await connectionsOf('/proc', process.pid, port)).length, 1)
  assert.deepEqual(await connectionsOf('/proc', 1, port), [])
  assert.deepEqual(await connectionsOf('/proc', 0x3fffff, port), [])
})

test('in another network namespace the kernel’s table tells them, and others work meanwhile', async t => {
  const procDir = mkdtempSync(join(tmpdir(), 'svc-connections-'))
  t.after(() => rmSync(procDir, { recursive: true }))
  for (const folder of ['7/net', '7/fd', '7/ns']) mkdirSync(join(procDir, folder), { recursive: true })
  for (const inode of [41, 42, 43]) symlinkSync(`socket:[${inode}]`, join(procDir, '7/fd', `${inode}`))
  const row = (ports: string, state: string, inode: number) =>
    `0: 0100007F:${ports} ${state} 0:0 00:0 0 0 0 ${inode} 1\n`
  const rows = [
    row('1F90 0100007F:C350', '01', 41),
    row('1F91 0100007F:C351', '08', 42),
    row('1F92 0100007F:C352', '06', 43),
    row('1F90 0100007F:C353', '01', 99),
  ]
  // More than is read in a turn.
  const many = row('1F90 0100007F:C353', '01', 99).repeat(50_000)
  writeFileSync(join(procDir, '7/net/tcp'), `  sl  local_address\n${many}${rows.join('')}`)
  let turns = 0
  const ticking = setInterval(() => turns++, 0)
  t.after(() => clearInterval(ticking))
  const found = await connectionsOf(procDir, 7)
  assert.deepEqual(
    found.map(({ localPort, peerPort }) => [localPort, peerPort]),
    [
      [8080, 50_000],
      [8081, 50_001],
    ],
  )
  assert.ok(turns >= 3, `${turns} turns of others`)
  assert.equal((await connectionsOf(procDir, 7, 8081)).length, 1)
})

test('a port at which somebody listens is known by the kernel', async t => {
  const { port } = await pair(t, '127.0.0.1')
  assert.equal(await isListenedAt('/proc', port), true)
  assert.equal(await isListenedAt('/proc', await freePort()), false)
})
