import assert from 'node:assert/strict'
import type { LookupFunction } from 'node:net'
import { test } from 'node:test'
import { limitedLookup } from './limited-lookup.ts'

test('so many names are asked for at a time, and each once', () => {
  const asked: [host: string, tell: Parameters<LookupFunction>[2]][] = []
  const lookup = limitedLookup(2, (host, _options, tell) => asked.push([host, tell]))
  const told: string[] = []
  for (const host of ['a', 'b', 'a', 'c', 'd', 'c'])
    lookup(host, {}, (error, address) => told.push(`${host} ${error?.message ?? address}`))
  const hosts = (): string => asked.map(([host]) => host).join()
  assert.equal(hosts(), 'a,b')
  asked[0]![1](null, '10.0.0.1', 4)
  assert.deepEqual(told, ['a 10.0.0.1', 'a 10.0.0.1'])
  assert.equal(hosts(), 'a,b,c')
  asked[1]![1](new Error('silent'), '')
  asked[2]![1](null, '10.0.0.3', 4)
  assert.equal(hosts(), 'a,b,c,d')
  lookup('a', {}, () => undefined)
  assert.equal(hosts(), 'a,b,c,d,a')
  assert.deepEqual(told.slice(2), ['b silent', 'c 10.0.0.3', 'c 10.0.0.3'])
})

test('names whose server is silent keep no others waiting', t => {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  const asked: [host: string, tell: Parameters<LookupFunction>[2]][] = []
  const lookup = limitedLookup(2, (host, _options, tell) => asked.push([host, tell]))
  const want = (...hosts: string[]): void => {
    for (const host of hosts) lookup(host, {}, () => undefined)
  }
  const running = (): string => asked.map(([host]) => host).join()
  const end = (host: string): void => {
    const at = asked.findIndex(each => each[0] === host)
    asked.splice(at, 1)[0]![1](new Error('silent'), '')
  }
  want('dead', 'gone')
  now = 5_000
  end('dead')
  end('gone')
  want('dead', 'gone', 'a', 'b')
  assert.equal(running(), 'dead,a')
  end('a')
  assert.equal(running(), 'dead,b')
  end('b')
  assert.equal(running(), 'dead')
  end('dead')
  assert.equal(running(), 'gone')
  // It has answered at once: it is as others are.
  want('dead', 'c')
  assert.equal(running(), 'gone,dead')
})
