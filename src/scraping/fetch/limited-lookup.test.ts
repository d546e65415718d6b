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
