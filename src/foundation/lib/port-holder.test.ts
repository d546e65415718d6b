import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { listeners, portHolder } from './port-holder.ts'

test('the process that listens on a port is found', async () => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const name = readFileSync('/proc/self/comm', 'utf8').trim()
  assert.deepEqual(portHolder(port), { pid: process.pid, name })
  await new Promise(resolve => server.close(resolve))
  assert.equal(portHolder(port), undefined)
})

test('only sockets that listen on the port count', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 0100007F:4A92 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0',
    '   1: 0100007F:4A92 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0',
    '   2: 00000000000000000000000000000000:4A92 00000000:0000 0A 00:0 00:0 0 65534        0 333 1 0',
    '   3: 0100007F:0050 00000000:0000 0A 00:0 00:0 0     0        0 444 1 0',
  ].join('\n')
  assert.deepEqual(listeners(table, 19090), [
    { inode: '111', user: 0, address: '0100007F' },
    { inode: '333', user: 65534, address: '00000000000000000000000000000000' },
  ])
  assert.deepEqual(listeners('', 80), [])
})
