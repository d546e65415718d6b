import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDockerAddress, shownDockerAddress } from './docker-address.ts'

test('an address of the client of Docker is read as the client reads it', () => {
  const check = (address: string, want: object) =>
    assert.deepEqual(parseDockerAddress(address), want, address)
  check('/run/docker.sock', { path: '/run/docker.sock' })
  check('unix:///run/user/1000/docker.sock', { path: '/run/user/1000/docker.sock' })
  check('tcp://10.0.0.5', { host: '10.0.0.5', port: 0, scheme: 'tcp' })
  check('tcp://docker:2376/', { host: 'docker', port: 2376, scheme: 'tcp' })
  check('tcp://[fd00::5]:2375', { host: 'fd00::5', port: 2375, scheme: 'tcp' })
  check('tcp://:2375', { host: 'localhost', port: 2375, scheme: 'tcp' })
  check('10.0.0.5:2375', { host: '10.0.0.5', port: 2375, scheme: 'tcp' })
  check('http://docker', { host: 'docker', port: 0, scheme: 'http' })
  check('https://docker:8443', { host: 'docker', port: 8443, scheme: 'https' })
})

test('an address that is of no use says why, and what to write', () => {
  const check = (address: string, want: RegExp) => {
    const read = parseDockerAddress(address)
    assert.ok('instead' in read, address)
    assert.match(read.reason, want)
    assert.match(read.instead, /^unix:\/\/\/run\//)
  }
  check('ssh://user@host', /does not support ssh/)
  check('npipe:////./pipe/docker_engine', /Windows/)
  check('fd://', /scheme fd/)
  check('unix://run/docker.sock', /absolute/)
  check('tcp://user:secret@host:2375', /user name or password/)
  for (const address of [
    '',
    'docker',
    'tcp://host:99999',
    'tcp://host:0',
    'tcp://host/path',
    'tcp://a b',
    'tcp://[::1',
    'x'.repeat(10_000),
  ])
    check(address, /not a Unix socket or a host with a port/)
  assert.equal(shownDockerAddress('tcp://user:sec@ret@host:1'), 'tcp://[REDACTED]@host:1')
})
