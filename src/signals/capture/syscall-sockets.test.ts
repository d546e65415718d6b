import assert from 'node:assert/strict'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../../test/helpers/program.ts'
import { ipText } from '../../foundation/lib/ip-text.ts'
import { ProcSockets, readTable, type SocketRow } from './syscall-sockets.ts'

test('the rows of /proc/net/tcp and tcp6 are read', () => {
  const rows = new Map<number, SocketRow>()
  const lines =
    `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000 20 4 30 10 -1
   2: 0100007F:1F90 0200007F:C351 06 00000000:00000000 03:00001234 00000000     0        0 0 3 0000
   3: 00000000000000000000000001000000:0050 B80D0120000000000000000001000000:C352 01 00:00 00:00 0 0 0 4713 1 0
  not a row
`.split('\n')
  const next = lines.values()
  for (let steps = 0; readTable(next, rows, 2); steps++) assert.ok(steps < lines.length)
  const shown = [...rows].map(([inode, { localBytes, localPort, peerBytes, peerPort, isListening }]) => {
    return [inode, ipText(localBytes), localPort, ipText(peerBytes), peerPort, isListening]
  })
  assert.deepEqual(shown, [
    [4711, '127.0.0.1', 8080, '0.0.0.0', 0, true],
    [4712, '127.0.0.1', 8080, '127.0.0.2', 50_000, false],
    [4713, '::1', 80, '2001:db8::1', 50_002, false],
  ])
})

test('descriptors of processes are told apart', async () => {
  const server = createServer(socket => socket.resume())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = connect(port, '127.0.0.1')
  await new Promise(resolve => client.once('connect', resolve))
  const file = openSync('/dev/null', 'r')
  try {
    const sockets = new ProcSockets()
    const { fd } = (client as unknown as { _handle: { fd: number } })._handle
    // Among a thousand others it takes turns.
    await until('its table is read', 20_000, () => sockets.find(process.pid, fd) !== 'unread')
    const found = sockets.find(process.pid, fd)
    assert.ok(typeof found === 'object')
    assert.deepEqual(
      [found.localPort, found.peerPort, ipText(found.peerBytes), found.isListening, found.blocking],
      [client.localPort, port, '127.0.0.1', false, false],
    )
    assert.equal(sockets.find(process.pid, file), 'none')
    assert.equal(sockets.find(process.pid, 999_999), 'gone')
    assert.equal(sockets.find(2 ** 22, 0), 'gone')
    const sides: string[] = []
    const all = new ProcSockets().forEach((pid, _fd, { localPort, peerPort, isListening }, side) => {
      if (pid === process.pid && (localPort === port || peerPort === port))
        sides.push(isListening ? 'listening' : localPort === port ? side : 'other end')
    })
    for (const _ of all);
    assert.deepEqual(sides.sort(), ['listening', 'other end', 'server'])
  } finally {
    closeSync(file)
    client.destroy()
    server.close()
  }
})

test('a large table is read in turns, and what is not in it is no TCP socket', async t => {
  const proc = mkdtempSync(join(tmpdir(), 'svc-sockets-'))
  t.after(() => rmSync(proc, { recursive: true }))
  for (const folder of ['7/net', '7/fd', '7/ns']) mkdirSync(join(proc, folder), { recursive: true })
  symlinkSync('net:[1]', join(proc, '7/ns/net'))
  for (const inode of [3, 80_000, 90_000]) symlinkSync(`socket:[${inode}]`, join(proc, '7/fd', `${inode}`))
  const row = (inode: number) => `0: 0100007F:1F90 0200007F:C350 01 0:0 00:0 0 0 0 ${inode} 1\n`
  writeFileSync(join(proc, '7/net/tcp'), Array.from({ length: 80_001 }, (_, i) => row(i)).join(''))
  const sockets = new ProcSockets(proc)
  let turns = 0
  const ticking = setInterval(() => turns++, 0)
  t.after(() => clearInterval(ticking))
  assert.equal(sockets.find(7, 90_000), 'unread')
  assert.equal(sockets.find(7, 3), 'unread')
  await until('the table is read', 20_000, () => typeof sockets.find(7, 3) === 'object')
  assert.ok(turns >= 3, `${turns} turns of others`)
  const last = sockets.find(7, 80_000)
  assert.ok(typeof last === 'object' && last.localPort === 8080)
  // It was read for this one.
  assert.equal(sockets.find(7, 90_000), 'none')
  let found = 0
  const count = () => {
    found++
  }
  for (const _ of new ProcSockets(proc).forEach(count));
  assert.equal(found, 2)
})

test('a process that is on its way out is told from others by its flags', t => {
  const proc = mkdtempSync(join(tmpdir(), 'svc-sockets-'))
  t.after(() => rmSync(proc, { recursive: true }))
  mkdirSync(join(proc, '7'))
  const sockets = new ProcSockets(proc)
  const check = (flags: number, want: boolean) => {
    writeFileSync(join(proc, '7', 'stat'), `7 (odd) 4 4 4 4 4 4) R 1 7 7 0 -1 ${flags} 4 4 4 4\n`)
    assert.equal(sockets.isEnding(7), want)
  }
  check(0x400000, false)
  check(0x400004, true)
  assert.equal(sockets.isEnding(8), false)
  assert.equal(new ProcSockets().isEnding(process.pid), false)
})
