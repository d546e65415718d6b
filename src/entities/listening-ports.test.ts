import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { listeningPorts } from './listening-ports.ts'

test('whatever the tables of sockets hold, ports are ports, each once and in rising order', t => {
  const procDir = mkdtempSync(join(tmpdir(), 'svc-ports-'))
  t.after(() => rmSync(procDir, { recursive: true }))
  mkdirSync(join(procDir, '7/net'), { recursive: true })
  mkdirSync(join(procDir, '7/fd'))
  for (let inode = 0; inode < 8; inode++) symlinkSync(`socket:[${inode}]`, join(procDir, '7/fd', `${inode}`))
  const head =
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
  const written = ([port, state, inode]: [number, string, number]) =>
    `0: 00000000:${port.toString(16)} 00000000:0000 ${state} 0:0 00:0 0 0 0 ${inode} 1\n`
  // So that ports are found, whatever chance brings.
  const three = [80, 443, 8080].map((port, inode) => written([port, '0A', inode]))
  const line = fc.tuple(fc.nat(0x1ffff), fc.constantFrom('0A', '0A', '01', ''), fc.nat(9)).map(written)
  const text = fc.array(fc.oneof({ weight: 6, arbitrary: line }, fc.string({ unit: 'binary' })), {
    maxLength: 20,
  })
  let most = 0
  fc.assert(
    fc.property(text, text, (tcp, tcp6) => {
      writeFileSync(join(procDir, '7/net/tcp'), head + tcp.join(''))
      writeFileSync(join(procDir, '7/net/tcp6'), tcp6.join(''))
      const ports = listeningPorts(procDir, 7)
      most = Math.max(most, ports.length)
      for (const [i, port] of ports.entries())
        assert.ok(Number.isInteger(port) && port <= 0xffff && port > (ports[i - 1] ?? -1), ports.join())
    }),
    { examples: [[three, []]] },
  )
  assert.ok(most > 2, 'ports are found')
})
