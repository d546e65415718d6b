import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isNearAddress,
  isOwnAddress,
  redirectedPlace,
  type TargetPlace,
  targetPlace,
} from './target-place.ts'

function place(text: string): TargetPlace {
  const found = targetPlace(text)
  assert.ok(typeof found !== 'string', String(found))
  return found
}

function check(text: string, want: Partial<TargetPlace>): void {
  const found = place(text)
  assert.deepEqual({ ...found, ...want }, found)
}

test('a URL tells where to connect to, and what to ask for', () => {
  check('http://a.example/metrics?x=y&x=z', {
    host: 'a.example',
    port: 80,
    path: '/metrics?x=y&x=z',
    hostField: 'a.example',
  })
  check('https://a.example:443/', {
    secure: true,
    port: 443,
    origin: 'https://a.example:443',
    hostField: 'a.example',
  })
  check('http://[::1]:9100/metrics', {
    host: '::1',
    port: 9100,
    hostField: '[::1]:9100',
    origin: 'http://[::1]:9100',
  })
})

test('people see neither user nor query', () => {
  check('http://us%40er:pass@a/m?token=secret', {
    user: 'us@er:pass',
    shown: 'http://a/m',
    hostField: 'a',
    path: '/m?token=secret',
  })
  check('http://%zz@a/m', { user: '%zz:' })
})

test('a socket has a path of its own', () => {
  check('unix:/run/x.sock:/metrics?a=http://b', {
    socketPath: '/run/x.sock',
    path: '/metrics?a=http://b',
    hostField: 'localhost',
  })
  check('unix:///run/x.sock', {
    socketPath: '/run/x.sock',
    path: '/metrics',
    shown: 'unix:/run/x.sock:/metrics',
  })
  assert.match(String(targetPlace('unix:x')), /socket missing/)
})

test('what is no URL is told', () => {
  assert.match(String(targetPlace('a b')), /not a URL/)
  assert.match(String(targetPlace('ftp://a/')), /scheme ftp is not supported/)
  assert.match(String(targetPlace('http://')), /not a URL|host missing/)
})

test('a redirect is read against the place that sent it', () => {
  const from = place('https://a.example:8443/x/metrics?y')
  const to = (location: string): string => {
    const found = redirectedPlace(from, location)
    return typeof found === 'string' ? found : `${found.origin} ${found.path}`
  }
  assert.equal(to('other?z'), 'https://a.example:8443 /x/other?z')
  assert.equal(to('//b.example/m'), 'https://b.example:443 /m')
  assert.equal(to('http://a.example:8443/m'), 'http://a.example:8443 /m')
  assert.match(to('javascript:alert(1)'), /scheme javascript is not supported/)
  assert.match(to('http://['), /not a URL/)
  const socket = place('unix:/run/x.sock:/metrics')
  assert.equal((redirectedPlace(socket, '/m') as TargetPlace).socketPath, '/run/x.sock')
  assert.equal((redirectedPlace(socket, 'http://a/m') as TargetPlace).socketPath, '')
  assert.match(String(redirectedPlace(socket, 'unix:/run/docker.sock:/info')), /scheme unix is not supported/)
})

test('this host is known by its addresses', () => {
  assert.ok(isOwnAddress('127.0.0.2', '127.0.0.1'))
  assert.ok(isOwnAddress('::ffff:127.0.0.1', '::ffff:127.0.0.1'))
  assert.ok(isOwnAddress('10.0.0.5', '10.0.0.5'))
  assert.ok(!isOwnAddress('10.0.0.6', '10.0.0.5'))
})

test('addresses that are others to each host', () => {
  for (const near of [
    '127.1.2.3',
    '::1',
    '::ffff:127.0.0.1',
    '169.254.169.254',
    '::ffff:169.254.1.1',
    'fe80::1',
  ])
    assert.ok(isNearAddress(near), near)
  for (const far of ['10.0.0.5', '128.0.0.1', '169.255.0.1', '::2', 'fd00::1', 'fec0::1', '2001:db8::1', ''])
    assert.ok(!isNearAddress(far), far)
})

test('a place is shown in bounds', () => {
  const found = redirectedPlace(place('http://a.example/'), `/${'x'.repeat(30_000)}`) as TargetPlace
  assert.equal(found.path.length, 30_001)
  assert.ok(found.shown.length < 600)
})
