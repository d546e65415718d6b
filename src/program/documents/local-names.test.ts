import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { ProcessTable } from '../../identity/entities/process-table.ts'
import { LocalNames } from './local-names.ts'

test('who listens at a port of this host is known by its service', async () => {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = server.address() as { port: number }
    const processes = new ProcessTable({ hostName: 'h', bootId: 'b', version: '1' })
    const names = new LocalNames(processes)
    assert.equal(names.at('127.0.0.1', port), undefined)
    await names.ready()
    const own = processes.running(process.pid)!.attributes.get('service.name')
    assert.equal(names.at('127.0.0.1', port)?.name, own)
    assert.equal(names.at('::1', port)?.name, own)
    for (const all of Object.values(networkInterfaces()))
      for (const { address } of all ?? []) assert.equal(names.at(address, port)?.name, own)
    assert.equal(names.at('192.0.2.1', port), undefined)
    assert.equal(names.at('127.0.0.1', 1), undefined)
  } finally {
    server.close()
  }
})

test('it is looked again after five seconds, and more rarely where that takes long', async () => {
  let nowMs = 0
  let looks = 0
  let tookMs = 10
  const processes = {
    liveServices: async () => {
      looks++
      nowMs += tookMs
      return []
    },
  }
  const names = new LocalNames(
    processes,
    () => nowMs,
    () => [],
  )
  const lookAfter = async (ms: number) => {
    nowMs += ms
    names.refresh()
    await new Promise(setImmediate)
    return looks
  }
  await names.ready()
  assert.equal(looks, 1)
  assert.equal(await lookAfter(4_900), 1)
  tookMs = 500
  assert.equal(await lookAfter(100), 2)
  assert.equal(await lookAfter(49_900), 2)
  assert.equal(await lookAfter(100), 3)
})

test('a failed look leaves what was known', async () => {
  let nowMs = 0
  const processes = {
    liveServices: async () => {
      if (nowMs > 0) throw new Error('too many open files')
      return [{ name: 'redis-server', namespace: '', instances: 1, ports: [6379] }]
    },
  }
  const names = new LocalNames(
    processes,
    () => nowMs,
    () => [],
  )
  await names.ready()
  nowMs = 10_000
  names.refresh()
  await new Promise(setImmediate)
  assert.equal(names.at('127.0.0.1', 6379)?.name, 'redis-server')
})
