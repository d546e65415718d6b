import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { peerUser, userInTable } from './peer-user.ts'

const isRoot = process.getuid?.() === 0
const nobody = 65_534

async function listening(t: TestContext, host: string): Promise<{ server: Server; port: number }> {
  const server = createServer({ allowHalfOpen: true })
  server.on('connection', socket => t.after(() => socket.destroy()))
  server.listen(0, host)
  await once(server, 'listening')
  t.after(() => server.close())
  return { server, port: (server.address() as { port: number }).port }
}

function endsOf(socket: Socket) {
  const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket
  return { localAddress, localPort, remoteAddress, remotePort }
}

/** A connection by a process of another user, which writes a line and then does as it is told. */
async function connectAs(t: TestContext, uid: number, port: number, host: string): Promise<void> {
  const script = `require('net').connect(${port}, ${JSON.stringify(host)}).on('error', () => {})`
  const child = spawn(process.execPath, ['-e', script], { uid, gid: uid, stdio: 'ignore', cwd: '/' })
  t.after(() => child.kill('SIGKILL'))
}

for (const [listen, dial] of [
  ['127.0.0.1', '127.0.0.1'],
  ['::', '127.0.0.1'],
  ['::', '::ffff:127.0.0.1'],
  ['::', '::1'],
  ['::1', '::1'],
] as const)
  test(`the user at the other end is known: ${dial} asks ${listen}`, async t => {
    const { server, port } = await listening(t, listen)
    const accepted = once(server, 'connection')
    const client = connect(port, dial)
    t.after(() => client.destroy())
    const [socket] = (await accepted) as [Socket]
    const ends = endsOf(socket)
    assert.equal(peerUser(ends), process.getuid!())
    // One that is none, and our own end, which is another.
    assert.equal(peerUser({ ...ends, remotePort: ends.remotePort ^ 1 }), undefined)
    assert.equal(peerUser({ ...ends, localPort: ends.localPort ^ 1 }), undefined)
  })

test('the user of another process is that of the one who made the socket', { skip: !isRoot }, async t => {
  for (const host of ['127.0.0.1', '::1']) {
    const { server, port } = await listening(t, '::')
    const accepted = once(server, 'connection')
    await connectAs(t, nobody, port, host)
    const [socket] = (await accepted) as [Socket]
    assert.equal(peerUser(endsOf(socket)), nobody)
  }
})

test('of a socket that its owner has closed, or half closed, nobody is the user', async t => {
  const { server, port } = await listening(t, '127.0.0.1')
  for (const leave of [
    (client: Socket) => client.end(),
    (client: Socket) => client.destroy(),
    (client: Socket) => client.resetAndDestroy(),
  ]) {
    const accepted = once(server, 'connection')
    const client = connect(port, '127.0.0.1')
    const [socket] = (await accepted) as [Socket]
    socket.on('error', () => undefined)
    const ends = endsOf(socket)
    await once(client, 'ready').catch(() => undefined)
    leave(client)
    await delay(50)
    // The kernel says 0 for what waits for the end: FIN_WAIT2 that nobody holds, TIME_WAIT.
    assert.equal(peerUser(ends), undefined, String(leave))
    socket.destroy()
    await delay(50)
    assert.equal(peerUser(ends), undefined, String(leave))
  }
})

test('a listener at the port of one that has gone does not stand in for it', async t => {
  const { port } = await listening(t, '127.0.0.1')
  const ends = { localAddress: '127.0.0.1', localPort: 1, remoteAddress: '127.0.0.1', remotePort: port }
  assert.equal(peerUser(ends), undefined)
})

test('what is no pair of addresses has no user', () => {
  const ends = { localAddress: '127.0.0.1', localPort: 1, remoteAddress: '::1', remotePort: 2 }
  assert.equal(peerUser(ends), undefined)
  for (const address of ['', 'localhost', 'fe80::1%lo', '::ffff:1.2.3', '127.0.0.1.'])
    assert.equal(peerUser({ ...ends, localAddress: address, remoteAddress: address }), undefined, address)
})

test('the table of /proc says the same, and nothing of what ends', () => {
  const row = (state: string, user: string, inode: string) =>
    `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n` +
    `   0: 0100007F:1F90 0100007F:4A92 ${state} 00000000:00000000 00:00000000 00000000 ${user}        0 ${inode} 1 0000000000000000 20 4 30 10 -1\n`
  const of = (table: string) => userInTable(table, '0100007F:1F90', '0100007F:4A92')
  assert.equal(of(row('01', ' 1000', '4321')), 1000)
  assert.equal(of(row('01', '    0', '4321')), 0)
  assert.equal(of(row('06', '    0', '0')), undefined)
  assert.equal(of(row('01', '    0', '0')), undefined)
  assert.equal(of(row('01', '    0', '4321').slice(0, -30)), undefined)
  assert.equal(userInTable(row('01', '    0', '4321'), '0100007F:4A92', '0100007F:1F90'), undefined)
  assert.equal(of(''), undefined)
})
