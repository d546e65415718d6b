import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { until } from '../../../test/helpers/program.ts'
import { duplicate } from '../../kernel/duplicate.ts'
import { openDoors } from './doors.ts'

test('many connections are accepted in a turn of the loop, and served as by the server itself', async t => {
  const server = createServer((request, response) => response.end(request.url))
  let turn = 0
  const turns = new Set<number>()
  let errors = 0
  server.on('connection', () => turns.add(turn))
  server.on('clientError', (_error, socket) => {
    errors++
    socket.destroy()
  })
  await new Promise<void>(resolve => server.listen({ port: 0, host: '127.0.0.1', backlog: 512 }, resolve))
  const close = openDoors(server, duplicate, 512)
  const { port } = server.address() as AddressInfo
  const clients: Socket[] = []
  t.after(() => {
    for (const client of clients) client.destroy()
  })
  const counting = setInterval(() => turn++)
  const texts: string[] = []
  for (let i = 0; i < 200; i++) {
    const client = connect(port, '127.0.0.1')
    clients.push(client)
    client.on('data', chunk => texts.push(String(chunk)))
    client.on('error', () => undefined)
    client.write(i === 7 ? 'no HTTP\r\n\r\n' : `GET /${i} HTTP/1.1\r\nHost: h\r\n\r\n`)
  }
  // The line fills meanwhile.
  for (const end = performance.now() + 50; performance.now() < end; );
  await until('all are answered', 20_000, () => texts.length === 199)
  clearInterval(counting)
  await until('what is no request is an error of the server', 20_000, () => errors === 1)
  assert.ok(texts.every(text => text.startsWith('HTTP/1.1 200 OK')))
  assert.ok(turns.size < 100, `${turns.size} turns`)
  close()
  await new Promise<void>(resolve => {
    server.close(() => resolve())
    for (const client of clients) client.destroy()
  })
  const refused = await new Promise<NodeJS.ErrnoException>(resolve => {
    connect(port, '127.0.0.1').on('error', resolve)
  })
  assert.equal(refused.code, 'ECONNREFUSED')
})
