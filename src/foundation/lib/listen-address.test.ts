import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostPort } from './host-port.ts'
import { parseListenAddress } from './listen-address.ts'

test('an address to listen on is a port with or without a host', () => {
  const check = (text: string, want: unknown) => assert.deepEqual(parseListenAddress(text), want)
  check(':19090', { port: 19090 })
  check('127.0.0.1:0', { host: '127.0.0.1', port: 0 })
  check('[::]:19090', { host: '::', port: 19090 })
  check('[fe80::1%eth0]:1', { host: 'fe80::1%eth0', port: 1 })
  check('localhost:80', { host: 'localhost', port: 80 })
  for (const wrong of ['', '19090', ':65536', ':-1', '::1:80', 'a b:80', 'host:', '[::1]', 'http://x:80'])
    check(wrong, undefined)
})

test('an IPv6 address stands in brackets before its port', () => {
  assert.equal(hostPort('::1', 80), '[::1]:80')
  assert.equal(hostPort('127.0.0.1', 80), '127.0.0.1:80')
})
