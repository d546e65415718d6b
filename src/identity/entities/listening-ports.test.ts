import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyProcess } from '../../../test/helpers/any-process.ts'
import { until } from '../../../test/helpers/program.ts'
import { allListeners, firstListeningPorts, listeningPorts } from './listening-ports.ts'
import { ProcessTable } from './process-table.ts'

test('whatever the tables of sockets hold, ports are ports, each once and in rising order', async t => {
  const procDir = mkdtempSync(join(tmpdir(), 'svc-ports-'))
  t.after(() => rmSync(procDir, { recursive: true }))
  mkdirSync(join(procDir, '7/net'), { recursive: true })
  mkdirSync(join(procDir, '7/fd'))
  mkdirSync(join(procDir, '7/ns'))
  symlinkSync('net:[1]', join(procDir, '7/ns/net'))
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
  await fc.assert(
    fc.asyncProperty(text, text, async (tcp, tcp6) => {
      writeFileSync(join(procDir, '7/net/tcp'), head + tcp.join(''))
      writeFileSync(join(procDir, '7/net/tcp6'), tcp6.join(''))
      const ports = await listeningPorts(procDir, 7)
      assert.deepEqual(firstListeningPorts(procDir, 7), { ports, isWhole: true })
      most = Math.max(most, ports.length)
      for (const [i, port] of ports.entries())
        assert.ok(Number.isInteger(port) && port <= 0xffff && port > (ports[i - 1] ?? -1), ports.join())
    }),
    { examples: [[three, []]], numRuns: 50 },
  )
  assert.ok(most > 2, 'ports are found')
})

test('a process with very many descriptors and sockets holds nobody up', async t => {
  const procDir = mkdtempSync(join(tmpdir(), 'svc-crowd-'))
  t.after(() => rmSync(procDir, { recursive: true }))
  for (const folder of ['7/net', '7/fd', '7/ns']) mkdirSync(join(procDir, folder), { recursive: true })
  symlinkSync('net:[1]', join(procDir, '7/ns/net'))
  const all = 20_000
  const row = (port: number, inode: number) =>
    `0: 00000000:${port.toString(16)} 00000000:0000 0A 0:0 00:0 0 0 0 ${inode} 1\n`
  writeFileSync(
    join(procDir, '7/net/tcp'),
    Array.from({ length: all }, (_, i) => row(1 + (i % 60_000), i)).join(''),
  )
  for (let i = 0; i < 2_000; i++) symlinkSync(`socket:[${i}]`, join(procDir, '7/fd', `${i}`))
  let turns = 0
  const ticking = setInterval(() => turns++, 0)
  t.after(() => clearInterval(ticking))
  assert.equal((await listeningPorts(procDir, 7)).length, 2_000)
  assert.deepEqual((await allListeners(procDir)).get(7)?.length, 2_000)
  assert.ok(turns >= 4, `${turns} turns of others`)
  const { ports, isWhole } = firstListeningPorts(procDir, 7)
  assert.ok(!isWhole && ports.length < 1_024)
})

test('who listens behind very many files is selected by its port all the same', async t => {
  const script = `
    for (let i = 0; i < 1_100; i++) require('node:fs').openSync('/dev/null')
    const server = require('node:net').createServer().listen(0, '127.0.0.1', () => console.log(server.address().port))`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const [told] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(told)
  const pid = child.pid!
  assert.equal(firstListeningPorts('/proc', pid).isWhole, false)
  const processes = new ProcessTable({ hostName: 'h', bootId: 'b', version: '1' })
  processes.select({ instrument: [{ ...anyProcess, ports: [{ from: port, to: port }] }], exclude: [] })
  assert.equal(processes.selected(pid, 'node'), false)
  await until('its port is found', 20_000, () => processes.selected(pid, 'node'))
  const view = await processes.explain(pid)
  assert.deepEqual([view?.listening, view?.selection.observed], [[port], true])
})
